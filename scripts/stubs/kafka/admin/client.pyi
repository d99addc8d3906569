"""The class that the facade's admin client is derived from; everything else is untyped."""

from typing import Any

class KafkaAdminClient:
    DEFAULT_CONFIG: dict[str, Any]
    config: dict[str, Any]

    def __init__(self, **configs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

def __getattr__(name: str) -> Any: ...
