"""Everything but the future is untyped."""

from typing import Any

def __getattr__(name: str) -> Any: ...
