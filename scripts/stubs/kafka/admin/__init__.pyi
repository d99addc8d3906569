"""Everything but the admin client is untyped."""

from typing import Any

def __getattr__(name: str) -> Any: ...
