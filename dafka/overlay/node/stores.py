"""Data stores of an endpoint, for any thread."""

from __future__ import annotations

from dafka.overlay.node.carrier import Carrier
from dafka.overlay.stores.master import Action


class Store:
    """A store of an endpoint, by its name."""

    def __init__(self, carrier: Carrier, name: str) -> None:
        self.name = name
        self._carrier = carrier

    def write(self, action: Action) -> None:
        """Change it."""
        self._carrier.hub.run(self._write, action)

    def close(self) -> None:
        """Detach it from its endpoint."""
        self._carrier.hub.run(self._detach)

    def _write(self, action: Action) -> None:
        self._carrier.check()
        self._carrier.carry(self._carrier.role.write(self._carrier.now, self.name, action))

    def _detach(self) -> None:
        if self.name in self._carrier.role.stores:
            self._carrier.carry(self._carrier.role.detach(self.name))
