"""Whether a broker runs, and what its callers are told if it does not or if its log fails."""

from __future__ import annotations

from kafka.errors import KafkaStorageError

from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.groups import Error
from dafka.hub.hub import Hub
from dafka.log import LogError
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)


class Lifecycle:
    """The state that all parts of one broker share: it runs until :meth:`stop`. ``name`` is for errors."""

    def __init__(self, hub: Hub, name: str) -> None:
        self._hub = hub
        self._name = name
        self.running = True

    def stop(self) -> None:
        """From now on no call is answered."""
        self.running = False

    def check(self) -> None:
        """Raise BrokerStoppedError if the broker is stopped."""
        if not self.running:
            self._hub.check()
            raise self.stopped_error()

    def stopped_error(self) -> BrokerStoppedError:
        """What ends a call of a stopped broker."""
        return BrokerStoppedError(f"the broker {self._name} is stopped")

    def storage_error(self, doing: str, name: str, error: LogError) -> Error:
        """What a client is told when the log fails; raises BrokerStoppedError if the stop is the reason."""
        self.check()
        log.error("%s %r failed: %s", doing, name, error)
        return KafkaStorageError
