"""``dafka topics`` and ``dafka sniff``: looking at a mesh from outside."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from dafka.cli.numbers import Seconds
from dafka.cli.options import TopicName, check_reader, ended_by_signal, mesh_arguments
from dafka.mesh.observer import Observer
from dafka.protocol.commands import Command, DirectHead, Head
from dafka.protocol.runs import Run

_ALL = [bytes([octet]) for octet in b"MHDEFKGWLT"]
_SHOWN = 60  # octets of a content that sniff shows


@click.command(short_help="List partitions with their last sequence.")
@click.argument("topic", type=TopicName(), required=False)
@click.option("--seconds", type=Seconds(), default=2.0, show_default=True, help="How long to listen.")
@mesh_arguments
def topics(topic: bytes | None, seconds: float, mesh: dict[str, Any]) -> None:
    """List the partitions of TOPIC, or of all topics, with their last sequence.

    The stores are asked, and live producers say it by themselves at every interval.
    """
    heads: dict[tuple[bytes, bytes], int] = {}
    deadline = time.monotonic() + seconds
    with ended_by_signal(), Observer([b"H"], **mesh) as observer:
        observer.ask_heads(topic or b"")
        while (left := deadline - time.monotonic()) > 0:
            for _, heard, _ in observer.poll(left):
                if isinstance(heard, (Head, DirectHead)) and topic in (None, heard.topic):
                    key = heard.topic, heard.address
                    heads[key] = max(heads.get(key, 0), heard.sequence)
        _check_tower(observer, seconds, mesh)
    for (name, address), sequence in sorted(heads.items()):
        click.echo(f"{_shown(name)}\t{_shown(address)}\t{sequence}")


@click.command(short_help="Print the commands that pass through the mesh.")
@click.option("--seconds", type=Seconds(), help="End after so long.")
@mesh_arguments
def sniff(seconds: float | None, mesh: dict[str, Any]) -> None:
    """Print the commands that pass through the mesh, decoded, one a line.

    At the end it counts the malformed messages on standard error, by cause.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    with ended_by_signal(), Observer(_ALL, **mesh) as observer:
        try:
            while deadline is None or time.monotonic() < deadline:
                commands = observer.poll(0.2)
                if not commands and sys.stdout is not None:
                    check_reader(sys.stdout)
                for when, heard, _ in commands:
                    for line in _lines(heard):
                        click.echo(f"{when:.3f} {line}")
            _check_tower(observer, seconds, mesh)
        finally:
            causes = ", ".join(f"{count} {cause}" for cause, count in sorted(observer.discarded.items()))
            if causes:
                click.echo(f"not decoded: {causes}", err=True)


def _check_tower(observer: Observer, seconds: float | None, mesh: dict[str, Any]) -> None:
    """Raise an error if no tower is heard: an empty list would look like an empty mesh."""
    if not observer.hears_tower:
        addresses = ", ".join(gives for _, gives in mesh["tower"])
        raise click.ClickException(
            f"nothing was heard from a tower at {addresses} in {seconds:g} s: is one running there? "
            "--sub and --pub say where. The topics of a broker are listed by `dafka kafka topics list`"
        )


def _lines(heard: Run | Command) -> list[str]:
    if not isinstance(heard, Run):
        fields = zip(heard._fields, heard, strict=True)
        return [f"{type(heard).__name__} " + " ".join(f"{name}={_text(value)}" for name, value in fields)]
    name = "Record" if heard.recipient is None else f"DirectRecord recipient={_text(heard.recipient)}"
    head = f"{name} address={_text(heard.address)} topic={_text(heard.topic)}"
    return [
        f"{head} sequence={sequence} size={len(content)} content={content[:_SHOWN]!r}"
        for sequence, content in enumerate(heard.contents, heard.first)
    ]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return _shown(value)
    return ",".join(map(_text, value)) if isinstance(value, tuple) else str(value)


def _shown(octets: bytes) -> str:
    """Untrusted octets for a terminal: one field of one line, without control characters."""
    text = octets.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
