"""``dafka overlay record`` and ``dafka overlay replay``.

A recording is a folder: ``cluster.json`` has the nodes with the prefixes that they want, and the links
between them; ``messages.csv`` a line for each message: time, publisher, topic and size. Contents are not
recorded.
"""

from __future__ import annotations

import csv
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from dafka.cli.numbers import Number, Seconds
from dafka.cli.options import ended_by_signal
from dafka.cli.overlay.joining import Joining, joining_options
from dafka.cli.overlay.replaying import Recorded, Recording, Replay
from dafka.overlay import Empty, Endpoint, Subscriber
from dafka.overlay.topology import Graph, Observer, as_json
from dafka.overlay.values import encode
from dafka.protocol.json_text import read_json

CLUSTER, MESSAGES = "cluster.json", "messages.csv"
HEADING = ("microseconds", "sender", "topic", "octets")

_POLL = 0.1  # seconds between two looks for new peers
_OWN = "<$>/"  # topics of the overlay itself
_CAPACITY = 100_000  # messages that wait to be recorded; then publishers wait


@click.command("record", short_help="Record who publishes what, without contents.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--count", type=click.IntRange(1), help="End after so many messages.")
@click.option("--seconds", type=Seconds(), help="End after so many seconds.  [default: upon Ctrl-C]")
@joining_options
def record_(folder: Path, count: int | None, seconds: float | None, joining: Joining) -> None:
    """Join a running overlay and record its topology and the meta data of all messages into FOLDER."""
    if (folder / CLUSTER).exists():
        raise click.ClickException(f"{folder} holds a recording already; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    recorded = 0
    with joining.endpoint() as endpoint:
        joining.await_peers(endpoint)
        with (
            endpoint.subscribe("", capacity=_CAPACITY) as messages,
            Observer(endpoint) as observer,
            (folder / MESSAGES).open("w", newline="") as file,
        ):
            observer.find_all(joining.timeout)  # so they have heard that this endpoint wants everything
            click.echo(f"recording {len(observer.graph.nodes) - 1} peers into {folder}", err=True)
            with ended_by_signal():
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow(HEADING)
                for row in _rows(messages, observer, count, seconds):
                    rows.writerow(row)
                    recorded += 1
            _write(folder, observer.graph, endpoint)
    click.echo(f"recorded {recorded} messages", err=True)


def _rows(
    messages: Subscriber, observer: Observer, count: int | None, seconds: float | None
) -> Iterator[tuple[int, str, str, int]]:
    began = time.monotonic()
    left = count
    while left is None or left > 0:
        if seconds is not None and time.monotonic() - began >= seconds:
            return
        observer.look()
        try:
            some = [messages.get(_POLL), *messages.poll()]
        except Empty:
            continue
        now = int((time.monotonic() - began) * 1e6)
        published = [message for message in some if not message.topic.startswith(_OWN)]
        for message in published[:left]:
            topic = message.topic.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            yield now, str(message.sender), topic, len(encode(message.value))
        left = None if left is None else left - len(published)


def _write(folder: Path, graph: Graph, endpoint: Endpoint) -> None:
    (folder / CLUSTER).write_text(json.dumps({"version": 1, **as_json(graph, endpoint.id)}, indent=1) + "\n")


def read(folder: Path) -> Recording:
    """A recording. Raises :class:`click.ClickException`."""
    try:
        cluster = read_json((folder / CLUSTER).read_text())
        with (folder / MESSAGES).open(newline="") as file:
            rows = csv.reader(file)
            if tuple(next(rows, ())) != HEADING:
                raise ValueError(f"{MESSAGES} does not begin with {','.join(HEADING)}")
            messages = [Recorded(int(when), sender, topic, int(size)) for when, sender, topic, size in rows]
        prefixes = {node["id"]: tuple(node["prefixes"] or ()) for node in cluster["nodes"]}
        links = [(one, other) for one, other in cluster["links"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{folder} is not a recording: {error}") from error
    return Recording(prefixes, connected(prefixes, links), messages)


def connected(nodes: Iterable[str], links: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The links, and one for each node that was gone before anybody could say who its peers were: to the node
    with most links."""
    degrees = Counter(end for link in links for end in link)
    alone = [name for name in nodes if not degrees[name]]
    if not degrees:
        return [(alone[0], name) for name in alone[1:]]
    most = max(degrees, key=lambda name: (degrees[name], name))
    return [*links, *[(most, name) for name in alone]]


@click.command("replay", short_help="Replay a recording as a benchmark.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--speed",
    type=Number(0),
    default=0.0,
    show_default=True,
    help="1: as fast as it was recorded, 2: twice as fast, 0: as fast as possible.",
)
@click.option("--timeout", type=Seconds(), default=60.0, show_default=True, help="Seconds without progress.")
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
def replay_(folder: Path, speed: float, timeout: float, json_: bool) -> None:
    """Build the recorded cluster in this process, with real connections, and publish what was recorded.

    Contents are octets of the recorded size. It ends when every subscriber has everything.
    """
    recording = read(folder)
    with ended_by_signal(), Replay(recording, timeout) as replay:
        result = replay.run(speed)
        if json_:
            click.echo(json.dumps(result._asdict()))
        else:
            click.echo(f"{result.nodes} nodes, {result.links} links, {result.seconds:.2f} s")
            for what, count in (("published", result.published), ("delivered", result.delivered)):
                click.echo(f"{count} messages {what}: {count / result.seconds:,.0f}/s")
        if result.left_out:
            click.echo(
                f"{result.left_out} messages of senders that are not in {CLUSTER} were left out", err=True
            )
        if result.delivered != result.expected:
            raise click.ClickException(f"{result.expected - result.delivered} deliveries are missing")
