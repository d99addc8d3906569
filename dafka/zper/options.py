"""ZperOptions: the settings that make a broker a ZPER server."""

from __future__ import annotations

from collections.abc import Mapping

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.front_end import NOTHING, Beside, FrontEnd, FrontEndOptions
from dafka.hub.hub import Hub
from dafka.security.keys import ServerKeys
from dafka.zper.front_end import Zper  # here, and not in the hub, where it would make a long turn
from dafka.zper.settings import Settings


class ZperOptions(Settings, FrontEndOptions):
    """ZPER's servers on a :class:`dafka.Broker`: ``Broker(path, zper=ZperOptions())``.

    Each option is a key of ``server.properties``, with ``_`` for ``.``. Everything listens on loopback, and
    on free ports unless it is told otherwise; :attr:`dafka.Broker.zper` tells which. An address of None: this
    server is not there. Raises ValueError for a value that a key does not take.
    """

    def open(
        self,
        hub: Hub,
        broker: BrokerInterface,
        before: Mapping[str, str],
        keys: ServerKeys | None = None,
        beside: Beside = NOTHING,
    ) -> FrontEnd:
        return Zper(hub, broker, self, before, keys)
