"""The version of Zeek Broker whose bindings these are."""

from __future__ import annotations


class Version:
    """Constants, as ``broker.Version`` has them."""

    MAJOR = 2
    MINOR = 8
    PATCH = 0
    PROTOCOL = 2

    @staticmethod
    def string() -> str:
        return f"{Version.MAJOR}.{Version.MINOR}.{Version.PATCH}"

    @staticmethod
    def compatible(protocol: int) -> bool:
        """Whether a version of the protocol is the one of these bindings."""
        return protocol == Version.PROTOCOL
