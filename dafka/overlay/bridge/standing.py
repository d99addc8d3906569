"""The broker of a bridge, for as long as the bridge runs.

A broker of this process may be stopped, and another one started at its address. Those who use it then get
errors of the first one, and go on with the second one when they try again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, cast

from kafka.errors import KafkaTimeoutError

from dafka.broker.connecting import connect
from dafka.broker.interface.broker import BrokerInterface
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.limits import LOOK_SECONDS

log = bounded_logger(__name__)


class Standing:
    """Finds the broker as :func:`dafka.broker.connect` does, and raises what that raises.

    A refused login is not tried again: the wrong password of a bridge would be silence for ever.
    """

    def __init__(
        self, bootstrap_servers: str | Iterable[str], timeout: float | None, login: dict[str, Any]
    ) -> None:
        self._servers = bootstrap_servers if isinstance(bootstrap_servers, str) else list(bootstrap_servers)
        self._login = login
        self._connection = connect(self._servers, timeout, retry_login=False, **login)
        self._looked = 0.0
        self.hub = self._connection.hub

    @property
    def broker(self) -> BrokerInterface:
        """Its methods are those of the broker that is there when they are called, in the hub."""
        return cast(BrokerInterface, self)

    def close(self) -> None:
        self._connection.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current(), name)

    def _current(self) -> BrokerInterface:
        broker = self._connection.broker
        now = time.monotonic()
        if not broker.running and now - self._looked >= LOOK_SECONDS:
            self._looked = now
            try:
                found = connect(self._servers, 0, **self._login)
            except KafkaTimeoutError:
                return broker  # its error says that it is stopped
            log.info("the broker of the bridge was stopped, and there is another one now")
            self._connection.close()
            self._connection = found
            return found.broker
        return broker
