"""The networks that the console is connected with beside the broker's interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import gevent

from dafka.broker.interface.front_end import NOTHING, Beside
from dafka.console.networks.notices import LogNotices
from dafka.console.networks.scraping import Scraper
from dafka.console.networks.shared import Shared
from dafka.hub.hub import get_hub
from dafka.mesh.address import TowerLike
from dafka.mesh.options import mesh_options
from dafka.security.keys import KeyFolder

if TYPE_CHECKING:
    from dafka.console.networks.overlay import OverlayWatch
    from dafka.console.networks.watching import MeshWatch, Source
    from dafka.overlay.node.connections.tls import Secured


@dataclass(frozen=True)
class NetworkOptions:
    """The networks that a console shows beside a cluster; those left out are not shown.

    ``tower``: of a mesh, as nodes take it; the console joins as an observer, at the interface ``bind`` and
    with ``keys``. ``overlay``: addresses of endpoints of the overlay (``"host:port"``), with ``overlay_tls``
    as an endpoint takes it. ``zper``: addresses of ZPControllers (``"tcp://host:port"``). ``metrics``: where
    towers serve theirs (``"http://host:port"``); nodes of the mesh tell it themselves. The console of a
    broker knows the broker's own mesh and ZPER's servers without being told. Raises ValueError.
    """

    tower: TowerLike = None
    bind: str = "127.0.0.1"
    keys: KeyFolder | None = None
    overlay: Iterable[str] = ()
    overlay_tls: Secured = None
    zper: Iterable[str] = ()
    metrics: Iterable[str] = ()

    def __post_init__(self) -> None:
        for name in ("overlay", "zper", "metrics"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is a list of addresses, not the text {getattr(self, name)!r}")
        _ = self.mesh
        if self.overlay:
            from dafka.overlay.node.types import parse_address

            for address in self.overlay:
                parse_address(address)
        for address in self.zper:
            if not isinstance(address, str) or not address.startswith("tcp://"):
                raise ValueError(f"{address!r} is not the address of a ZPController: tcp://HOST:PORT")
        for address in self.metrics:
            found = _METRICS.fullmatch(address) if isinstance(address, str) else None
            if found is None or not 0 < int(found[1]) < 2**16:
                raise ValueError(f"{address!r} is not where metrics are served: http://HOST:PORT")

    @property
    def is_empty(self) -> bool:
        """Whether nothing is named."""
        return self.tower is None and not tuple(self.overlay) and not tuple(self.zper)

    @property
    def mesh(self) -> Source | None:
        """The mesh of the tower."""
        from dafka.console.networks.watching import Source

        if self.tower is None:
            return None
        return Source(mesh_options(self.tower, bind=self.bind, keys=self.keys))


_METRICS = re.compile(r"http://(?:[^\s:/@?#\[\]]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})(?:/metrics)?/?", re.ASCII)

NONE = NetworkOptions()


class Networks:
    """Made and used in the console's thread. ``core``: the broker of this process whose console it is."""

    def __init__(self, options: NetworkOptions = NONE, core: Any = None, beside: Beside = NOTHING) -> None:
        self.beside = beside
        self.core = core
        self._zper = tuple(options.zper)
        self._metrics = tuple(options.metrics)
        self.scraper = Scraper()
        self._look_at_zper = Shared(self._ask_zper)
        self._mesh: MeshWatch | None = None
        self._overlay: OverlayWatch | None = None
        self.notices: LogNotices | None = None
        if core is not None:
            self.notices = LogNotices()
            self.notices.open()
        if options.tower is not None or core is not None:
            from dafka.console.networks.watching import MeshWatch

            self._mesh = MeshWatch(partial(_mesh_of, options, core))
        if tuple(options.overlay):
            from dafka.console.networks.overlay import OverlayWatch

            self._overlay = OverlayWatch(partial(_endpoint, tuple(options.overlay), options.overlay_tls))
            self._look_at_overlay = Shared(self._overlay.look)

    @property
    def connected(self) -> Mapping[str, bool]:
        """Which of them there are."""
        return {
            "mesh": self._mesh is not None,
            "overlay": self._overlay is not None,
            "zper": bool(self._zper) or self.beside.zper is not None,
        }

    @property
    def mesh(self) -> MeshWatch | None:
        """The mesh, if one is known."""
        return self._mesh

    def named_metrics(self) -> list[dict[str, Any]]:
        """Metrics of the servers that the options name; all are asked at the same time."""
        places = [urlsplit(one) for one in self._metrics]
        asking = [gevent.spawn(self.scraper.ask, one.hostname or "", one.port or 80) for one in places]
        gevent.joinall(asking, raise_error=True)
        return [one.value for one in asking]

    def look_at_overlay(self) -> dict[str, Any] | None:
        """The overlay as it is now; None without one."""
        return None if self._overlay is None else self._look_at_overlay()

    def look_at_zper(self) -> dict[str, Any]:
        """ZPER's servers as they are now."""
        return self._look_at_zper()

    def _ask_zper(self) -> dict[str, Any]:
        found: dict[str, Any] = {"own": None, "controllers": []}
        if self.beside.zper is not None or self._zper:
            from dafka.console.networks import zper

            if self.beside.zper is not None:
                found["own"] = zper.of_broker(self.beside.zper, get_hub().run)  # type: ignore[arg-type]
            found["controllers"] = zper.of_controllers(self._zper)
        return found

    def close(self) -> None:
        """Leave all of them."""
        if self.notices is not None:
            self.notices.close()
        for watch in (self._mesh, self._overlay):
            if watch is not None:
                watch.close()


def _mesh_of(options: NetworkOptions, core: Any) -> Source | None:
    """The mesh that was named, or the broker's own, once it has joined one."""
    if options.tower is not None:
        return options.mesh
    from dafka.console.networks.watching import Source

    node = core.joined
    return None if node is None else Source(node.endpoint.options, {node.known_as: "this broker"})


def _endpoint(peers: tuple[str, ...], tls: Secured) -> Any:
    from dafka.overlay.node.endpoint import Endpoint

    return Endpoint(peers=peers, tls=tls)
