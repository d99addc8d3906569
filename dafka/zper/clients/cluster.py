"""A client's view of a cluster: the nodes, as they know each other."""

from __future__ import annotations

from types import TracebackType
from typing import Any
from uuid import uuid4

from dafka.hub.waits import wait_of
from dafka.protocol.json_text import read_json
from dafka.zper.clients.asking import ask
from dafka.zper.clients.connection import Connection, Context
from dafka.zper.commands import InvalidResponseError, RefusedError, Status

ADDRESS = "tcp://127.0.0.1:5559"


class Cluster:
    """Asks a ZPController. ``timeout`` is how many seconds a response may take. Used by one thread at a
    time."""

    def __init__(
        self, address: str = ADDRESS, *, timeout: float | None = 30.0, context: Context | None = None
    ) -> None:
        self._timeout = wait_of(timeout)
        self._connection = Connection(address, lambda: b"zper/" + uuid4().bytes, context=context)

    def nodes(self) -> list[dict[str, Any]]:
        """All nodes that are known, the one that is asked first, with their state: ``up`` or ``lost``."""
        return self._list("nodes", b"NODES")

    def peers(self) -> list[dict[str, Any]]:
        """The controllers that the configuration of the one that is asked names."""
        return self._list("peers", b"PEERS")

    def topics(self, name: str | None = None) -> list[dict[str, Any]]:
        """The topics on all nodes, or the one of that name: node, first position and end. Not all of very
        many."""
        return self._list("topics", b"TOPICS", *([] if name is None else [name.encode()]))

    def _list(self, what: str, *request: bytes) -> list[dict[str, Any]]:
        frames = ask(self._connection, list(request), self._timeout, "ZPController")
        if not frames or frames[0] != bytes([Status.OK]):
            code = Status(frames[0][0]) if frames and frames[0] in (b"\x65", b"\x66", b"\xff") else None
            if code is None:
                raise InvalidResponseError("status", f"the response to {request[0].decode()} has no status")
            raise RefusedError(code, request[0].decode())
        try:
            found = read_json(frames[1])[what]
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise InvalidResponseError("json", f"{request[0].decode()}: {error!r}"[:200]) from None
        if not isinstance(found, list):
            raise InvalidResponseError("json", f"{request[0].decode()}: a list is wanted")
        return found

    def close(self) -> None:
        self._connection.close(0)

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
