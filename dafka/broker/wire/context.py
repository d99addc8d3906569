"""Who asks."""

from __future__ import annotations

from typing import NamedTuple


class Context(NamedTuple):
    """The client id of the request's header, and the client's host as Kafka writes it ("/127.0.0.1")."""

    client_id: str = ""
    client_host: str = ""


IN_PROCESS = Context(client_host="/127.0.0.1")
