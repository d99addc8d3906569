"""``--metrics-port``: the metrics of a daemon, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from dafka.mesh.prometheus import MetricsServer, check_available


def metrics_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--metrics-port`` and ``--metrics-host``."""
    command = click.option(
        "--metrics-host", default="127.0.0.1", show_default=True, help="Interface for --metrics-port."
    )(command)
    return click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        callback=_check_metrics,
        help="Serve metrics for Prometheus on this port (0: any). Needs the extra 'metrics'.",
    )(command)


def _check_metrics(ctx: click.Context, param: click.Parameter, port: int | None) -> int | None:
    if port is not None:
        check_available()  # before anything has started
    return port


@contextmanager
def serve_metrics(
    kind: str, read: Callable[[], Mapping[str, Any]], port: int | None, host: str
) -> Iterator[None]:
    """Serve metrics for the block, if there is a port for them."""
    if port is None:
        yield
        return
    with MetricsServer(kind, read, port, host) as server:
        click.echo(f"metrics: http://{host}:{server.port}/metrics", err=True)
        yield
