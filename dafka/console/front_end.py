"""The console of a broker of this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dafka.broker.interface.front_end import FrontEnd
from dafka.console.application import make_application
from dafka.console.desk import Bounds
from dafka.console.doors import Doors
from dafka.console.server import Server


class BrokersConsole(FrontEnd):
    """The console of a broker of this process. Hub side; raises OSError if it cannot listen."""

    def __init__(self, address: tuple[str, int], doors: Doors, before: Mapping[str, str]) -> None:
        host, port = address
        wanted = port or int(before.get("console", ":0").rpartition(":")[2])
        try:
            self._server = serve(host, wanted, doors)
        except OSError:
            if wanted == port:
                raise
            self._server = serve(host, port, doors)  # the port of the last run is taken

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"console": named(self._server)}

    @property
    def url(self) -> str:
        """What a browser is to open."""
        return f"http://{named(self._server)}/"

    def metrics(self) -> dict[str, Any]:
        return {}

    @property
    def discarded(self) -> Mapping[str, int]:
        return {}

    def close(self) -> None:
        self._server.close()


def serve(host: str, port: int, doors: Doors) -> Server:
    """A server for who comes through these doors. Raises OSError."""
    return Server("" if host == "*" else host, port, lambda: make_application(doors, Bounds()))


def named(server: Server) -> str:
    """``HOST:PORT`` that it listens on."""
    host, port = server.address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
