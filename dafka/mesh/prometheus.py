"""A node's metrics for Prometheus, with ``prometheus_client``, which the extra ``metrics`` installs.

Nothing is counted twice: a collector asks the node when it is scraped. Names are those of
:mod:`dafka.mesh.metrics` behind ``dafka_`` and the kind of the node: ``dafka_store_records_in_total``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dafka.mesh.metrics import COUNTERS, DESCRIPTIONS, LABELS
from dafka.protocol.errors import DafkaError


class MetricsUnavailableError(DafkaError, ImportError):
    """``prometheus_client`` is not installed."""


class MetricsBindError(DafkaError, OSError):
    """The address that metrics are to be served on cannot be bound."""


def check_available() -> None:
    """Raise :class:`MetricsUnavailableError` if ``prometheus_client`` is missing."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise MetricsUnavailableError(
            "metrics for Prometheus need prometheus_client: pip install 'dafka[metrics]'"
        ) from error


class MetricsServer:
    """Serves metrics on ``http://host:port/metrics`` until :meth:`close`.

    ``port`` 0 takes a free one; :attr:`port` says which. Raises :class:`MetricsUnavailableError`,
    :class:`MetricsBindError`.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        check_available()
        from prometheus_client import CollectorRegistry, start_http_server

        self._registry = CollectorRegistry(auto_describe=False)
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=self._registry)
        except OSError as error:
            raise MetricsBindError(f"metrics cannot be served on {host}:{port}: {error}") from error
        self.port = int(self._server.server_port)

    @contextmanager
    def serving(self, kind: str, read: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """Serve what ``read()`` returns for the block. ``kind``: the node's, in small letters."""
        collector = _Collector(kind, read)
        self._registry.register(collector)
        try:
            yield
        finally:
            self._registry.unregister(collector)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class _Collector:
    def __init__(self, kind: str, read: Callable[[], Mapping[str, Any]]) -> None:
        self._kind = kind
        self._read = read

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, value in self._read().items():
            full = f"dafka_{self._kind}_{name}"
            description = DESCRIPTIONS.get(name, name)
            if isinstance(value, Mapping):
                kind = CounterMetricFamily if name in COUNTERS else GaugeMetricFamily
                family = kind(full, description, labels=[LABELS.get(name, "cause")])
                for label, count in value.items():
                    family.add_metric([label], count)
                yield family
            elif name in COUNTERS:
                yield CounterMetricFamily(full, description, value=value)
            else:
                yield GaugeMetricFamily(full, description, value=value)

    def describe(self) -> list[Any]:
        return []
