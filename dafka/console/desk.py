"""The desk: the broker and the figures with which a function of the API works."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gevent.lock import BoundedSemaphore
from kafka.errors import KafkaError

from dafka.broker.connecting import Connection
from dafka.broker.interface.admin import Resource, ResourceType
from dafka.broker.looking.outcomes import RefusedError, check
from dafka.console import limits
from dafka.console.decoding.decoder import Decoder
from dafka.console.decoding.options import SchemaRegistry
from dafka.console.decoding.registry import Registry
from dafka.console.errors import BusyError, NoBrokerError
from dafka.console.networks.networks import Networks


class Bounds:
    """Shared by all requests of a console: bounds on what may be under way. Made in the console's thread."""

    def __init__(self, registry: SchemaRegistry | None = None) -> None:
        """Raises TlsError."""
        self.registry = None if registry is None else Registry(registry)
        self.reading = BoundedSemaphore(limits.READERS)
        self.large = BoundedSemaphore(limits.LARGE_HELD)
        self.streams: Counter[str | None] = Counter()  # that are under way, by account
        self.samples: OrderedDict[str | None, Sample] = OrderedDict()  # by account, the oldest first


class Sample:
    """The last sample of an account, which waits for nobody else's."""

    def __init__(self) -> None:
        self.taking = BoundedSemaphore(1)
        self.when = 0.0
        self.found: Any = None


class Desk:
    """A broker, with the rights of the user who asks. Without one, its use raises NoBrokerError."""

    def __init__(
        self,
        connection: Connection | None,
        bounds: Bounds,
        *,
        writes: bool,
        user: str | None,
        networks: Networks | None = None,
    ) -> None:
        self._connected = connection
        self._bounds = bounds
        self.writes = writes
        self.user = user
        self.networks = Networks() if networks is None else networks

    @property
    def has_broker(self) -> bool:
        """Whether there is one."""
        return self._connected is not None

    @property
    def _connection(self) -> Connection:
        if self._connected is None:
            raise NoBrokerError("this console was started without a Kafka: --bootstrap-servers names one")
        return self._connected

    @property
    def broker(self) -> Any:
        """The broker itself, for what only one of this process has. Its methods run in the hub."""
        return self._connection.broker

    @property
    def hub(self) -> Any:
        """The hub in which the broker's methods run."""
        return self._connection.hub

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the broker's interface; other requests go on meanwhile."""
        return self._connection.call(method, *args, **kwargs)

    def run(self, method: Callable[..., Any], *args: Any) -> Any:
        """Call something else in the hub."""
        return self._connection.hub.run(method, *args)

    def check_operator(self) -> None:
        """An account sees what concerns the whole broker if the broker tells it the broker's own
        settings, which takes DESCRIBE_CONFIGS of the cluster. Raises RefusedError and KafkaError."""
        if self.user is not None:
            resource = Resource(ResourceType.BROKER, "")
            check({"the settings of all brokers": self.call("describe_configs", {resource: []})[resource]})

    @property
    def is_operator(self) -> bool:
        """Whether :meth:`check_operator` would pass."""
        try:
            self.check_operator()
        except (RefusedError, KafkaError):
            return False
        return True

    def sampled(self, take: Callable[[Desk], Any]) -> Any:
        """The result of ``take``; all browsers of an account share one that is less than a second old."""
        samples = self._bounds.samples
        sample = samples.setdefault(self.user, Sample())
        samples.move_to_end(self.user)
        while len(samples) > limits.SESSIONS:
            samples.popitem(last=False)
        with sample.taking:
            if not sample.when or time.monotonic() - sample.when >= limits.SAMPLE_SECONDS:
                sample.found = take(self)
                sample.when = time.monotonic()
            return sample.found

    def decoder(self, key: str, value: str, seconds: float | None = None) -> Decoder:
        """The decoder of keys and values that a request asks for.

        A schema of one's own choice is the registry's, which is asked with the console's account: an account
        needs the right to see what concerns the whole broker. Raises RefusedError and KafkaError.
        """
        if key.startswith("schema:") or value.startswith("schema:"):
            self.check_operator()
        return Decoder(self._bounds.registry, key, value, seconds)

    @property
    def has_registry(self) -> bool:
        """Whether there is a schema registry to ask."""
        return self._bounds.registry is not None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around reading a page of records: only so many are read at a time."""
        with self._bounds.reading:
            yield

    @contextmanager
    def holding_large(self) -> Iterator[None]:
        """Around what a stream does with a large batch; waits while others hold so many."""
        with self._bounds.large:
            yield

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Around a stream. Raises BusyError if there are too many."""
        streams = self._bounds.streams
        most = limits.STREAMS if self.user is None else limits.STREAMS_OF_ONE
        if streams.total() >= limits.STREAMS or streams[self.user] >= most:
            raise BusyError(f"{most} searches, downloads and followed topics are under way already")
        streams[self.user] += 1
        try:
            yield
        finally:
            streams[self.user] -= 1
            if not streams[self.user]:
                del streams[self.user]
