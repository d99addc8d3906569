"""``--metrics-port``: the metrics of a daemon, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from dafka.mesh.prometheus import Health, MetricsServer, Series, check_available


class Metrics:
    """Where a command serves its metrics; ``server`` is None if they are not wanted."""

    def __init__(self, server: MetricsServer | None, host: str) -> None:
        self._server = server
        self._host = host

    @contextmanager
    def of(
        self,
        kind: str,
        read: Callable[[], Mapping[str, Any]],
        health: Health | None = None,
        series: Series = tuple,
        announce: Callable[[int], None] | None = None,
    ) -> Iterator[None]:
        """Serve what ``read()``, ``health()`` and ``series()`` return for the block, and say where.

        ``announce``: tells the mesh of the port.
        """
        if self._server is None:
            yield
            return
        with self._server.serving(kind, read, health, series):
            if announce is not None:
                announce(self._server.port)
            click.echo(f"metrics: http://{self._host}:{self._server.port}/metrics", err=True)
            yield


def metrics_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--metrics-port`` and ``--metrics-host``; the command gets them as ``metrics``, a :class:`Metrics`.

    The port is bound before the command does anything.
    """

    @click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        callback=_check_metrics,
        help="Serve metrics for Prometheus on this port (0: any). Needs the extra 'metrics'.",
    )
    @click.option(
        "--metrics-host", default="127.0.0.1", show_default=True, help="Interface for --metrics-port."
    )
    @wraps(command)
    def wrapped(*args: Any, metrics_port: int | None, metrics_host: str, **kwargs: Any) -> Any:
        if metrics_port is None or kwargs.get("check"):
            return command(*args, metrics=Metrics(None, metrics_host), **kwargs)
        with MetricsServer(metrics_port, metrics_host) as server:
            return command(*args, metrics=Metrics(server, metrics_host), **kwargs)

    return wrapped


def _check_metrics(ctx: click.Context, param: click.Parameter, port: int | None) -> int | None:
    if port is not None:
        check_available()  # before anything has started
    return port
