"""The connection manager that kafka-python's admin methods use, over the broker interface.

kafka-python's admin client turns each of its methods into Kafka requests and the responses into the
dictionaries it returns. All of that is used as it is; :class:`Requests` takes the place of the connections
underneath. A request goes through kafka-python's encoding in both directions, so it is refused for the same
values, and a response has the same fields as one that came over a connection. In between, a broker of this
process answers through :func:`dafka.broker.server.answer`; one of another process gets the request as it is.

A request that the broker does not know raises what kafka-python raises for a broker too old to know it,
``IncompatibleBrokerVersion``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaTimeoutError,
    RequestTimedOutError,
    UnknownBrokerIdError,
    UnsupportedVersionError,
)
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.version import __version__

from compat.kafka._calls import Calls
from compat.kafka._client import Client
from dafka.broker import server as wire


class Requests:
    """Sends Kafka requests to the broker of a client; stands in for ``KafkaConnectionManager``."""

    def __init__(self, client: Client, config: dict[str, Any], versions: BrokerVersionData | None) -> None:
        """``versions``: the API versions of the broker, as the program gives them; None asks the broker."""
        self._client = client
        self._calls = Calls(client)
        self._timeout_ms = config["request_timeout_ms"]
        self._context = wire.Context(client_id=config["client_id"] or "", client_host="127.0.0.1")
        self._cluster = ClusterMetadata(**config)
        self._versions = versions
        self.config = {"client_software_name": "kafka-python", "client_software_version": __version__}
        self.closed = False

    def run(self, method: Callable[..., Any], *args: Any) -> Any:
        """Run one of the admin client's coroutine functions to its end, in the calling thread."""
        if self.closed:
            raise self._client.closed_error("KafkaAdminClient is closed")
        coroutine = method(*args)
        try:
            coroutine.send(None)
        except StopIteration as finished:
            return finished.value
        coroutine.close()
        raise RuntimeError(f"{method.__name__} waits for something that is not an answer of the broker")

    async def send(self, request: Any, node_id: Any = None) -> Any:
        """The response to a request.

        Raises:
            UnknownBrokerIdError: there is no broker of that number.
            IncompatibleBrokerVersion: the broker does not know the request, or not in a version that fits.
            RequestTimedOutError: no answer within ``request_timeout_ms``.
        """
        if node_id is not None:
            self._check_node(node_id)
        if request.API_VERSION is None:
            request.API_VERSION = self.broker_version_data.api_version(request)
        return self._exchange(request, node_id)

    def _exchange(self, request: Any, node_id: Any = None) -> Any:
        version = request.API_VERSION
        encoded = request.encode()
        broker = self._client.broker
        if broker.is_remote:
            return self._call(request, broker.send, request, node_id)
        received = type(request).decode(encoded, version=version)
        try:
            response = self._call(request, wire.answer, broker, received, self._context)
        except UnsupportedVersionError as error:
            raise IncompatibleBrokerVersion(str(error)) from None
        return type(response).decode(response.encode(version=version), version=version)

    def _call(self, request: Any, fn: Callable[..., Any], *args: Any) -> Any:
        what = type(request).__name__.removesuffix("Request")
        try:
            return self._calls.within(self._timeout_ms, what, fn, *args)
        except KafkaTimeoutError as error:
            raise RequestTimedOutError(str(error)) from None

    def _check_node(self, node_id: Any) -> None:
        """Raise UnknownBrokerIdError unless there is a broker of that number."""
        if self._cluster.broker_metadata(node_id) is None and self.cluster.broker_metadata(node_id) is None:
            raise UnknownBrokerIdError(node_id)

    async def sleep(self, seconds: float) -> None:
        """Wait, where kafka-python's methods do so between two attempts."""
        time.sleep(seconds)

    async def get_connection(self, node_id: Any) -> Any:
        """A connection to that broker: the versions that it understands."""
        self._check_node(node_id)
        return SimpleNamespace(broker_version_data=self.broker_version_data)

    @property
    def broker_version_data(self) -> BrokerVersionData:
        """Which requests the broker knows, in which versions."""
        if self._versions is None:
            response = self._exchange(
                ApiVersionsRequest(version=3, **self.config)
            )  # Apache Kafka wants names
            keys = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
            self._versions = BrokerVersionData(api_versions=keys)
        return self._versions

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The release of Kafka that the broker's requests are of."""
        return self.broker_version_data.broker_version  # type: ignore[no-any-return]

    @property
    def cluster(self) -> ClusterMetadata:
        """kafka-python's view of the cluster, as it is now."""
        request = MetadataRequest(topics=[], version=self.broker_version_data.api_version(MetadataRequest))
        self._cluster.update_metadata(self._exchange(request))
        return self._cluster
