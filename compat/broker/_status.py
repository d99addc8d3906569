"""Peers, and what is said about them: statuses and errors."""

from __future__ import annotations

import uuid

from compat.broker._enums import SC, PeerFlags, PeerStatus
from dafka.overlay.peering import statuses
from dafka.overlay.wire.codes import ErrorCode, StatusCode

_NOBODY = bytes(16)


class NetworkInfo:
    """Where a peer is."""

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port

    def __repr__(self) -> str:
        return f"{self.address}:{self.port}"


class OptionalNetworkInfo:
    """Where a peer is, if that is known."""

    def __init__(self, info: NetworkInfo | None) -> None:
        self._info = info

    def is_set(self) -> bool:
        return self._info is not None

    def get(self) -> NetworkInfo:
        """Raises ValueError if it is not set."""
        if self._info is None:
            raise ValueError("it is not known where this endpoint is: ask is_set() first")
        return self._info

    def __repr__(self) -> str:
        return "nil" if self._info is None else repr(self._info)


class EndpointInfo:
    """An endpoint: its id (all zeros: unknown) and where it is."""

    def __init__(self, node_id: str, network: NetworkInfo | None) -> None:
        self._node_id = node_id
        self.network = OptionalNetworkInfo(network)

    def node_id(self) -> str:
        return self._node_id

    def __repr__(self) -> str:
        return self._node_id

    @classmethod
    def _of(cls, info: statuses.EndpointInfo) -> EndpointInfo:
        network = None if info.network is None else NetworkInfo(info.network.address, info.network.port)
        return cls(str(uuid.UUID(bytes=bytes(info.endpoint or _NOBODY))), network)


class PeerInfo:
    """A direct peer."""

    def __init__(self, peer: EndpointInfo, flags: PeerFlags, status: PeerStatus) -> None:
        self.peer = peer
        self.flags = flags
        self.status = status


class Status:
    """A change of a peer's state."""

    def __init__(self) -> None:
        self._status = statuses.Status(StatusCode.UNSPECIFIED, statuses.EndpointInfo(None), "")

    @classmethod
    def _of(cls, status: statuses.Status) -> Status:
        made = cls()
        made._status = status
        return made

    def code(self) -> SC:
        return SC(int(self._status.code))

    def context(self) -> EndpointInfo | None:
        """The endpoint it is about; None for an unspecified status."""
        return None if self._is_unspecified else EndpointInfo._of(self._status.context)

    def __repr__(self) -> str:
        code, info, message = self._status
        about = [] if self._is_unspecified else [str(one) for one in _about(info)]
        return f"{code.name.lower()}({', '.join([*about, _quoted(message)])})"

    @property
    def _is_unspecified(self) -> bool:
        return self._status.code == StatusCode.UNSPECIFIED


class Error:
    """A failure. Code 0: no failure."""

    def __init__(self) -> None:
        self._error = statuses.Error(ErrorCode.NONE, None, "")

    @classmethod
    def _of(cls, error: statuses.Error) -> Error:
        made = cls()
        made._error = error
        return made

    def code(self) -> int:
        """A number, which equals a member of :class:`~compat.broker.EC` if that has it."""
        return int(self._error.code)

    def __repr__(self) -> str:
        code, info, message = self._error
        if code == ErrorCode.NONE:
            return "none"
        about = []
        if info is not None:
            node, *network = _about(info)
            about = [f"endpoint_info({node}, {f'*{network[0]}' if network else 'none'})"]
        return f"{code.name.lower()}({', '.join([*about, _quoted(message)])})"


def _about(info: statuses.EndpointInfo) -> list[str | NetworkInfo]:
    shown = EndpointInfo._of(info)
    return [shown.node_id(), *([shown.network.get()] if shown.network.is_set() else [])]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
