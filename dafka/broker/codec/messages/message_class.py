"""Classes of messages, made by kafka-python from this package's JSON files."""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage


def message_class(name: str, package: str) -> Any:
    """The class of the message ``name``, whose fields are in ``name``.json in the folder of ``package``."""
    return type(ApiMessage)(name, (ApiMessage,), {"__module__": package}, load_json=package)
