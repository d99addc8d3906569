"""A node's metrics for Prometheus, with ``prometheus_client`` (the extra ``metrics``), and its health.

Nothing is counted twice: a collector asks the node when it is scraped. Names are those of
:mod:`dafka.mesh.metrics` behind ``dafka_`` and the kind of the node: ``dafka_store_records_in_total``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from dafka.mesh.metrics import COUNTERS, DESCRIPTIONS, LABELS
from dafka.protocol.errors import DafkaError


class Labelled(Protocol):
    """A gauge with labels, such as those of topics, partitions and groups."""

    @property
    def name(self) -> str:
        """The whole name."""

    @property
    def description(self) -> str:
        """A description, in words."""

    @property
    def labels(self) -> Sequence[str]:
        """The names of its labels."""

    @property
    def rows(self) -> Sequence[tuple[Sequence[str], float]]:
        """The values of its labels, and the number."""


Series = Callable[[], Sequence[Labelled]]

Health = Callable[[], Mapping[str, Any]]
"""What ``/health`` answers: ``alive``, ``ready``, and more."""

_STARTING = {"alive": True, "ready": False, "detail": "it is starting, or stopping"}


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
    """Serves metrics on ``http://host:port/metrics`` until :meth:`close`, and the health of the node.

    ``/health`` and ``/health/ready`` are 200 if it serves clients, ``/health/live`` if it is alive, and 503
    otherwise; each is a JSON object. ``port`` 0 takes a free one; :attr:`port` says which. Raises
    :class:`MetricsUnavailableError`, :class:`MetricsBindError`.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        check_available()
        from prometheus_client import CollectorRegistry, make_wsgi_app

        from dafka.mesh.wsgi import serve  # brings the standard library's HTTP along

        self._registry = CollectorRegistry(auto_describe=False)
        self._health: Health = lambda: _STARTING
        self._metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(self._registry)
        try:
            self._server = serve(host, port, self._answer)
        except OSError as error:
            raise MetricsBindError(f"metrics cannot be served on {host}:{port}: {error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        self.port = int(self._server.server_port)

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "").rstrip("/")
        if path not in ("/health", "/health/ready", "/health/live"):
            return self._metrics(environ, start_response)
        try:
            health = self._health()
        except Exception as error:  # of any kind: the answer names it
            health = {"alive": True, "ready": False, "detail": f"{type(error).__name__}: {error}"}
        well = health["alive"] if path.endswith("live") else health["ready"]
        status = "200 OK" if well else "503 Service Unavailable"
        start_response(status, [("Content-Type", "application/json")])
        return [json.dumps(dict(health)).encode() + b"\n"]

    @contextmanager
    def serving(
        self,
        kind: str,
        read: Callable[[], Mapping[str, Any]],
        health: Health | None = None,
        series: Series = tuple,
    ) -> Iterator[None]:
        """Serve what ``read()`` and ``series()`` return for the block.

        ``kind``: the node's, in small letters. Without ``health`` it is well as long as the block lasts.
        """
        collector = _Collector(kind, read, series)
        self._registry.register(collector)
        self._health = health or (lambda: {"alive": True, "ready": True, "detail": ""})
        try:
            yield
        finally:
            self._health = lambda: _STARTING
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
    def __init__(self, kind: str, read: Callable[[], Mapping[str, Any]], series: Series) -> None:
        self._kind = kind
        self._read = read
        self._series = series

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
        for one in self._series():
            family = GaugeMetricFamily(one.name, one.description, labels=one.labels)
            for labels, number in one.rows:
                family.add_metric(labels, number)
            yield family

    def describe(self) -> list[Any]:
        return []
