"""``KafkaAdminClient``: kafka-python's own class over a broker in this process, or over TCP.

kafka-python's admin client turns each of its methods into Kafka requests and the responses into the
dictionaries it returns. All of that is used as it is, over
:class:`~compat.kafka.admin._requests.Requests`. A method that this broker cannot carry out fails as with an
Apache Kafka that lacks the feature:

- ACLs raise ``SecurityDisabledError`` where no authorizer is configured (``Broker(acls=...)``).
- Replicas, voters and feature levels are those of one broker, and cannot be others.
- Everything else works: topics, SCRAM credentials, partitions, configurations, groups, group offsets,
  partition offsets, deleting records, elections, the cluster, its log directories and versions, producers and
  transactions.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

from kafka.admin.client import KafkaAdminClient as _TheirAdminClient
from kafka.errors import KafkaConfigurationError
from kafka.protocol.broker_version_data import BrokerVersionData

from compat.kafka._client import Client
from compat.kafka._kinds import check_kinds
from compat.kafka._metrics import Registry
from compat.kafka._mirror import counterpart_names
from compat.kafka._times import check_times, timeout_of
from compat.kafka.admin._requests import Requests


class KafkaAdminClient(_TheirAdminClient):
    """Administers a broker; methods and configuration are kafka-python's. Addresses: see :mod:`compat.kafka`.

    Raises:
        KafkaConfigurationError: unknown configuration keys, times that are none, or an ``api_version`` that
            is not a tuple.
        UnrecognizedBrokerVersion: an ``api_version`` older than all that kafka-python knows.
        KafkaTimeoutError: no broker at ``bootstrap_servers``.
    """

    _closed = True  # until __init__ has succeeded: close() may be called before

    def __init__(self, **configs: Any) -> None:
        unknown = set(configs).difference(self.DEFAULT_CONFIG)
        if unknown:
            raise KafkaConfigurationError(f"Unrecognized configs: {unknown}")
        self.config = copy.copy(self.DEFAULT_CONFIG)
        self.config.update(configs)
        check_kinds(self.config)
        check_times(self.config)
        asked = self.config["api_version"]
        versions = None if asked is None else BrokerVersionData(asked)
        self._metrics = Registry(self.config)
        self._broker = Client(self.config, True)
        self._manager = self._net = Requests(self._broker, self.config, versions)
        self._controller_id = None
        self._closed = False

    def close(self) -> None:
        """End the use of the broker; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._manager.closed = True
        self._metrics.close()
        self._broker.close()


def _with_checked_times(method: Callable[..., Any], times: list[str]) -> Callable[..., Any]:
    """A method of kafka-python's that refuses NaN, with which ``wait_for_topics`` waits for ever."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            given = {}  # the method says what is wrong
        for name in times:
            timeout_of(given.get(name), name)
        return method(*args, **kwargs)

    return checked


for _name, _method in inspect.getmembers(_TheirAdminClient, inspect.isfunction):
    _times = [one for one in inspect.signature(_method).parameters if one.endswith("timeout_ms")]
    if _times and not _name.startswith("_"):
        setattr(KafkaAdminClient, _name, _with_checked_times(_method, _times))

__getattr__ = counterpart_names(__name__)
