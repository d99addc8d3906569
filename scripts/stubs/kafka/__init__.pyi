"""Everything of kafka-python but its errors is untyped."""

from typing import Any

def __getattr__(name: str) -> Any: ...
