"""``dafka zper produce``, ``fetch``, ``offsets``, ``relay``, ``acks``, ``nodes`` and ``count``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import islice
from typing import Any, BinaryIO, TextIO

import click

from dafka.cli.numbers import Seconds
from dafka.cli.options import check_reader, common_options, ended_by_signal, key_options
from dafka.security.keys import KeyFolder
from dafka.zper import frames
from dafka.zper.clients import acks, cluster, reader, relay, writer
from dafka.zper.clients.connection import Context
from dafka.zper.commands import EARLIEST, LATEST
from dafka.zper.identity import InvalidIdentityError, Mode, build

_LOOK = 1.0  # seconds between two looks whether somebody still reads our output
_FIRST = {"earliest": EARLIEST, "latest": LATEST}


class Topic(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A topic as an identity has it."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            build(str(value))
        except InvalidIdentityError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Place(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """``earliest``, ``latest`` or a number."""

    def __init__(self, number: str) -> None:
        self.name = f"earliest|latest|{number}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if value in _FIRST:
            return _FIRST[value]
        if not (value.isascii() and value.isdigit() and int(value) < 2**63):
            self.fail(f"{value!r} is not {self.name}", param, ctx)
        return int(value)


_TOPIC = click.argument("topic", type=Topic())
_TIMEOUT = click.option(
    "--timeout", type=Seconds(), default=30.0, show_default=True, help="Seconds that a response may take."
)
_COUNT = click.option("--count", type=click.IntRange(1), help="End after so many.")
_IDLE = click.option("--idle", type=Seconds(), help="End when nothing has come for so many seconds.")
_SEPARATOR = click.option(
    "--separator", default="\t", help="The text between the frames of a message.  [default: a tab]"
)


def _address(default: str) -> Callable[[Any], Any]:
    """``--address``, and ``--keys`` of the context that the command connects with."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @key_options
        @click.option("--address", default=default, show_default=True, help="Where the server listens.")
        @wraps(command)
        def wrapped(*, keys: KeyFolder | None, **options: Any) -> Any:
            return command(context=None if keys is None else keys.context(), **options)

        return wrapped

    return with_options


@click.command("produce", short_help="Write each line of standard input as a message.")
@_TOPIC
@_address(writer.ADDRESS)
@click.option(
    "--mode",
    type=click.Choice(["0", "1", "2"]),
    default="2",
    show_default=True,
    help="0: no response, 1: one at each flush, 2: one for each message, which is waited for.",
)
@click.option("--separator", help="Split each line into frames at this.  [default: one frame]")
@_TIMEOUT
@common_options
def produce_(
    context: Context | None, topic: str, address: str, mode: str, separator: str | None, timeout: float
) -> None:
    """Write each line of standard input as a message of TOPIC."""
    with (
        ended_by_signal(),
        writer.Writer(topic, address, mode=Mode(int(mode)), timeout=timeout, context=context) as sending,
    ):
        for line in _octets_of(sys.stdin, "input"):
            message = line.removesuffix(b"\n").removesuffix(b"\r")
            sending.send(*([message] if not separator else message.split(separator.encode())))


@click.command("fetch", short_help="Print the messages of a topic.")
@_TOPIC
@_address(reader.ADDRESS)
@click.option(
    "--from", "start", type=Place("POSITION"), default="earliest", show_default=True, help="Where to begin."
)
@click.option("--follow", is_flag=True, help="Go on with what is written from then on.")
@click.option("--positions", is_flag=True, help="Print the position before each message.")
@_COUNT
@_IDLE
@_SEPARATOR
@_TIMEOUT
@common_options
def fetch_(
    context: Context | None,
    topic: str,
    address: str,
    start: int,
    follow: bool,
    positions: bool,
    count: int | None,
    idle: float | None,
    separator: str,
    timeout: float,
) -> None:
    """Print the messages of TOPIC that there are, one a line."""
    if idle is not None and not follow:
        raise click.UsageError("--idle ends what --follow would wait for: give --follow too")
    with (
        ended_by_signal(),
        reader.Reader(topic, address, position=start, timeout=timeout, context=context) as reading,
    ):
        between = separator.encode()

        def line(message: frames.Message) -> bytes:
            position = b"%d%s" % (message.position, between) if positions else b""
            return position + between.join(message.frames)

        messages: Iterable[frames.Message] = _watched(reading.receive, idle) if follow else reading
        _print(map(line, islice(messages, count)), at_once=follow)


@click.command("offsets", short_help="Print positions of a topic.")
@_TOPIC
@_address(reader.ADDRESS)
@click.option(
    "--time",
    "when",
    type=Place("MS"),
    default="latest",
    show_default=True,
    help="Segments last modified before these milliseconds.",
)
@click.option("--entries", type=click.IntRange(1, 2**31 - 1), help="How many at most.")
@_TIMEOUT
@common_options
def offsets_(
    context: Context | None, topic: str, address: str, when: int, entries: int | None, timeout: float
) -> None:
    """Print what OFFSET answers for TOPIC, one position a line.

    earliest: the first position. latest: the start of the last segment, and the end.
    """
    with ended_by_signal(), reader.Reader(topic, address, timeout=timeout, context=context) as reading:
        _print(b"%d" % position for position in reading.offsets(when, entries))


@click.command("relay", short_help="Print the messages of a topic as they come.")
@_TOPIC
@_address(relay.ADDRESS)
@_COUNT
@_IDLE
@_SEPARATOR
@common_options
def relay_(
    context: Context | None, topic: str, address: str, count: int | None, idle: float | None, separator: str
) -> None:
    """Print the messages of TOPIC that are written from now on, one a line."""
    with ended_by_signal(), relay.Relay(topic, address, context=context) as relayed:
        messages = _watched(relayed.receive, idle)
        _print(map(separator.encode().join, islice(messages, count)))


@click.command("acks", short_help="Print what is flushed.")
@click.argument("topics", nargs=-1, type=Topic(), metavar="[TOPIC]...")
@_address(acks.ADDRESS)
@_COUNT
@_IDLE
@_SEPARATOR
@common_options
def acks_(
    context: Context | None,
    topics: tuple[str, ...],
    address: str,
    count: int | None,
    idle: float | None,
    separator: str,
) -> None:
    """Print topic, position and first frame of each message that is flushed; of all topics without a
    TOPIC."""
    with ended_by_signal(), acks.Acks(*topics, address=address, context=context) as heard:
        between = separator.encode()
        found = islice(_watched(heard.receive, idle), count)
        _print(between.join([ack.topic.encode(), b"%d" % ack.position, ack.id]) for ack in found)


@click.command("nodes", short_help="Print the nodes of a cluster, or its topics.")
@_address(cluster.ADDRESS)
@click.option("--peers", is_flag=True, help="Print the controllers in the configuration of the one asked.")
@click.option("--topics", is_flag=True, help="Print the topics on all nodes.")
@click.option("--topic", type=Topic(), help="Print one topic on all nodes.")
@_TIMEOUT
@common_options
def nodes_(
    context: Context | None, address: str, peers: bool, topics: bool, topic: str | None, timeout: float
) -> None:
    """Print the nodes that a ZPController knows, each as JSON in a line."""
    if peers + topics + (topic is not None) > 1:
        raise click.UsageError("--peers, --topics and --topic are three questions: ask one")
    with ended_by_signal(), cluster.Cluster(address, timeout=timeout, context=context) as asked:
        found = asked.peers() if peers else asked.topics(topic) if topics or topic else asked.nodes()
        _print(json.dumps(one).encode() for one in found)


@click.command("count", short_help="Count the messages of a topic.")
@_TOPIC
@_address(reader.ADDRESS)
@_TIMEOUT
@common_options
def count_(context: Context | None, topic: str, address: str, timeout: float) -> None:
    """Count the messages of TOPIC in each segment that OFFSET lists, and all of them."""
    with ended_by_signal(), reader.Reader(topic, address, timeout=timeout, context=context) as reading:
        now = int(time.time() * 1000)
        starts = sorted({reading.earliest(), *reading.offsets(now), *reading.offsets()})
        total = 0
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            counted = 0
            reading.seek(start)
            while end is None or reading.position < end:
                before = reading.position
                counted += sum(
                    1 for message in islice(reading, 1000) if end is None or message.position < end
                )
                if reading.position == before:
                    break
            if counted:
                click.echo(f"{start:020d} : {counted}")
            total += counted
        click.echo(f"Total : {total}")


def _watched(receive: Callable[[float], Any], idle: float | None) -> Iterable[Any]:
    """The messages of ``receive(seconds)``, until nothing came for ``idle`` seconds; looks for our output's
    reader."""
    heard = time.monotonic()
    while True:
        left = _LOOK if idle is None else min(_LOOK, heard + idle - time.monotonic())
        found = receive(max(0.0, left))
        if found:
            heard = time.monotonic()
            yield found
        elif idle is not None and time.monotonic() >= heard + idle:
            return
        elif sys.stdout is not None:
            check_reader(sys.stdout)


def _print(lines: Iterable[bytes], *, at_once: bool = True) -> None:
    """Print lines; ``at_once``: each as soon as it is there."""
    output = _octets_of(sys.stdout, "output")
    for line in lines:
        output.write(line + b"\n")
        if at_once:
            output.flush()
    output.flush()


def _octets_of(stream: TextIO | None, name: str) -> BinaryIO:
    """The octets of a standard stream."""
    if stream is None:
        raise click.ClickException(f"standard {name} is closed")
    return stream.buffer
