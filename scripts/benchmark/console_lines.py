"""How long the first page of the console takes, and the costs of browsers that follow a topic.

The first page is all that it needs before it shows something, one after the other where a browser has to.
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from statistics import median
from urllib.request import urlopen

import psutil
from line import Line, measurement, megabytes, milliseconds, pick
from processes import Figures

TOPICS = 10_000
ATTEMPTS = 15
FOLLOWERS = 10
RECORDS_A_SECOND = 1000
FOLLOWED_SECONDS = 10.0


def console(link: Connection) -> Figures:
    """A broker with so many topics, and its console; it tells its memory when it is asked, and writes."""
    import dafka.broker
    from dafka.broker.interface.topics import TopicSpec
    from dafka.testing import TestBroker

    with TestBroker(console=True) as broker:
        connection = dafka.broker.connect(broker.bootstrap_servers)
        for begin in range(0, TOPICS, 500):
            names = [f"topic-{number:05d}" for number in range(begin, begin + 500)]
            connection.call("create_topics", {name: TopicSpec(1) for name in names})
        broker.create_topic("followed", 3)
        link.send(broker.console)
        own = psutil.Process()
        while link.recv() != "end":
            link.send(own.memory_info().rss)
            ends = time.monotonic() + FOLLOWED_SECONDS
            while time.monotonic() < ends:
                broker.preload("followed", [b'{"n": 1, "text": "%076d"}' % 1] * (RECORDS_A_SECOND // 10))
                time.sleep(0.1)
            link.send(own.memory_info().rss)
    return ()


def browser(link: Connection) -> Figures:
    """Seconds for the first page, for a page of the list and for a search in it; octets for the followers."""
    url = link.recv()
    first, listed, found = (
        median(_seconds(ask) for _ in range(ATTEMPTS))
        for ask in (
            lambda: _first_page(url),
            lambda: _get(url + "api/topics"),
            lambda: _get(url + "api/topics?search=777"),
        )
    )
    with ExitStack() as stack:
        counts = [0] * FOLLOWERS
        link.send("measure")
        before = link.recv()
        for number in range(FOLLOWERS):
            stream = stack.enter_context(urlopen(url + "api/topics/followed/follow"))
            threading.Thread(target=_count, args=(stream, counts, number), daemon=True).start()
        after = link.recv()
        link.send("end")
    if min(counts) == 0:
        raise RuntimeError(f"a follower saw nothing: {counts}")
    return first, listed, found, max(float(after - before), 0.0)


def _first_page(url: str) -> None:
    page = _get(url).decode()
    for file in re.findall(r'(?:href|src)="/(static/[^"]+)"', page):
        _modules(url, file, set())
    for path in ("session", "networks", "cluster", "rates", "notices"):
        json.loads(_get(f"{url}api/{path}"))


def _modules(url: str, file: str, seen: set[str]) -> None:
    """A script with all that it imports."""
    if file in seen:
        return
    seen.add(file)
    text = _get(url + file).decode()
    if file.endswith(".js") and "/vendor/" not in file:
        folder = file.rpartition("/")[0]
        for name in re.findall(r'^import .* from "(\.[^"]+)";$', text, re.MULTILINE):
            path = f"{folder}/{name}".replace("/./", "/")
            _modules(url, re.sub(r"[^/]+/\.\./", "", path), seen)


def _get(url: str) -> bytes:
    with urlopen(url) as answer:
        content: bytes = answer.read()
        return content


def _seconds(ask: object) -> float:
    assert callable(ask)
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began


def _count(stream: object, counts: list[int], number: int) -> None:
    with suppress(Exception):  # it is closed at the end
        for line in stream:  # type: ignore[attr-defined]
            counts[number] += line.startswith(b"data:")


_measured = measurement(browser, console)
_WHERE = f"{TOPICS:,} topics".replace(",", " ")

CONSOLE_LINES = [
    Line(f"console: first page, {_WHERE}", milliseconds, pick(_measured), None, "", most=0.1),
    Line(f"console: a page of {_WHERE}", milliseconds, pick(_measured, 1), None, "", most=0.3),
    Line(f"console: a search among {_WHERE}", milliseconds, pick(_measured, 2), None, "", most=0.3),
    Line(
        f"console: memory of {FOLLOWERS} browsers that follow {RECORDS_A_SECOND} records a second",
        *(megabytes, pick(_measured, 3), None, ""),
        most=50e6,
    ),
]
