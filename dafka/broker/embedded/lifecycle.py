"""Whether a broker runs, and the errors of calls when it does not or when its log fails."""

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
        """The error that ends a call of a stopped broker."""
        return BrokerStoppedError(f"the broker {self._name} is stopped")

    def storage_error(self, doing: str, name: str, error: LogError) -> Error:
        """The error for a client when the log fails. Raises BrokerStoppedError if the stop is the reason."""
        self.check()
        log.error("%s %r failed: %s", doing, name, error)
        return KafkaStorageError
