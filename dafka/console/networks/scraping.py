"""The metrics that nodes of other processes serve for Prometheus.

Their servers may be slow, hostile or something else: an answer has an end in time and in octets, and only
numbers of this project's names are taken from it.
"""

from __future__ import annotations

import http.client
import math
import re
from collections import OrderedDict
from functools import partial
from typing import Any

import gevent

from dafka.console import limits
from dafka.console.green_http import GreenConnection
from dafka.console.networks.shared import Shared
from dafka.sockets.hosts import host_and_port

_LINE = re.compile(r"dafka_[a-z]+_([a-z0-9_]{1,200}?)(?:_total)? (\S{1,40})")


class Scraper:
    """Asks servers of metrics, each at most once a second for all browsers. In the console's thread."""

    def __init__(self) -> None:
        self._servers: OrderedDict[tuple[str, int], Shared[dict[str, Any]]] = OrderedDict()

    def ask(self, host: str, port: int) -> dict[str, Any]:
        """``metrics`` by their names in :mod:`dafka.mesh.metrics`, ``metrics_at``, and ``metrics_error`` in
        words: one of metrics and error is null."""
        place = host, port
        shared = self._servers.pop(place, None) or Shared(partial(_ask, *place))
        self._servers[place] = shared
        while len(self._servers) > limits.SCRAPED:
            self._servers.popitem(last=False)
        return shared()


def _ask(host: str, port: int) -> dict[str, Any]:
    url = f"http://{host_and_port(host, port)}/metrics"
    connection = GreenConnection(host, port, limits.SCRAPE_SECONDS)
    metrics, error = None, None
    try:
        with gevent.Timeout(limits.SCRAPE_SECONDS):
            connection.request("GET", "/metrics", headers={"Accept": "text/plain"})
            with connection.getresponse() as answer:  # which may have the connection for itself
                text = answer.read(limits.SCRAPED_OCTETS).decode("utf-8", "replace")
        metrics = read_metrics(text) if answer.status == 200 else None
        if not metrics:
            error = f"the answer, {answer.status}, is not the metrics of a node"
    except (gevent.Timeout, TimeoutError):
        error = f"no answer within {limits.SCRAPE_SECONDS:g} s"
    except (OSError, http.client.HTTPException) as failure:
        words = (failure.strerror if isinstance(failure, OSError) else None) or type(failure).__name__
        error = f"no answer: {words}"
    finally:
        connection.close()
    return {"metrics": metrics or None, "metrics_at": url, "metrics_error": error}


def read_metrics(text: str) -> dict[str, float]:
    """The numbers without labels in what Prometheus reads; a last line without an end is left out."""
    found: dict[str, float] = {}
    for line in text[: text.rfind("\n") + 1].splitlines():
        one = _LINE.fullmatch(line)
        if one is None:
            continue
        try:
            number = float(one[2])
        except ValueError:
            continue
        if math.isfinite(number):
            found[one[1]] = int(number) if number.is_integer() else number
    return found
