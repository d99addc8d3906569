"""The class that the facade's future is derived from; everything else is untyped."""

from typing import Any

RecordMetadata: Any

class FutureRecordMetadata:
    args: Any
    error_on_callbacks: bool
    _produce_future: Any

def __getattr__(name: str) -> Any: ...
