"""Requests that have one response, and are sent again on a new connection when theirs ends before it."""

from __future__ import annotations

from collections.abc import Sequence

from dafka.zper.clients.connection import Connection, Deadline
from dafka.zper.clients.errors import ConnectionLostError, NoResponseError


def ask(
    connection: Connection, request: Sequence[bytes], timeout: float | None, server: str, what: str = ""
) -> list[bytes]:
    """The frames of the response to a request that changes nothing.

    ``timeout``: seconds for all attempts together; None: for ever. ``server`` and ``what`` are named in the
    :class:`~dafka.zper.clients.errors.NoResponseError` that it raises when the time is over.
    """
    deadline = Deadline(timeout)
    if connection.is_asked:  # Ctrl-C has ended the wait for that response: it must not answer this request
        connection.reopen(deadline)
    while True:
        try:
            connection.is_asked = True
            if not connection.try_send(request):
                raise ConnectionLostError("a socket that has no room for a request has none for a response")
            response = connection.receive(deadline)
        except ConnectionLostError:
            if not deadline.passed():
                connection.reopen(deadline)
                continue
            response = None
        if response is None:
            # A response that comes too late must not answer the next request.
            connection.reopen(Deadline(0))
            where = ", ".join(connection.addresses)
            raise NoResponseError(
                f"{server} at {where}{what}: no response to {request[0].decode()} in {timeout} s"
            )
        connection.is_asked = False
        return response
