"""``dafka overlay store``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dafka.cli.numbers import Seconds
from dafka.cli.options import ended_by_signal
from dafka.cli.overlay.joining import Joining, joining_options, line, shown
from dafka.overlay.bridge.json_forms import NotJson, from_json, loads
from dafka.overlay.errors import InvalidValue
from dafka.overlay.node.stores.store import Store
from dafka.overlay.values import Value

_READS = {"get": 1, "exists": 1, "index": 2, "keys": 0}
_WRITES = {
    "put": (2, 2),
    "put-unique": (2, 2),
    "erase": (1, 1),
    "clear": (0, 0),
    "increment": (2, 2),
    "decrement": (2, 2),
    "append": (2, 2),
    "insert-into": (2, 3),
    "remove-from": (2, 2),
    "push": (2, 2),
    "pop": (1, 1),
}
_WITHOUT_EXPIRY = {"erase", "clear"}


@click.command("store", short_help="Read and change a data store.")
@click.argument("name")
@click.argument("operation", type=click.Choice([*_READS, *_WRITES, "events"]))
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT]...")
@click.option("--expiry", type=Seconds(), help="Seconds until the key goes, from this change on.")
@joining_options
def store_(
    name: str, operation: str, arguments: tuple[str, ...], expiry: float | None, joining: Joining
) -> None:
    """Read or change the data store NAME, whose master is anywhere in the overlay.

    ARGUMENTs are a key and, as the operation needs it, an index and a value, in JSON; other text is a
    string. `events` prints what changes until Ctrl-C. The exit status is 1 for a key that is not there, and
    for a put-unique of a key that is.
    """
    _check_count(operation, len(arguments))
    if expiry is not None and (operation in _READS or operation in _WITHOUT_EXPIRY or operation == "events"):
        raise click.UsageError(f"{operation} has no --expiry")
    values = [_value(text) for text in arguments]
    with ended_by_signal(), joining.endpoint() as endpoint:
        joining.await_peers(endpoint)
        if operation == "events":
            _print_events(endpoint.attach_clone(name))
            return
        with endpoint.attach_proxy(name) as store:
            if operation in _READS:
                method = "get_index_from_value" if operation == "index" else operation
                found = getattr(store, method)(*values, timeout=joining.timeout)
                click.echo(line(shown(found)))
                if operation == "exists" and not found:
                    raise SystemExit(1)
                return
            more: dict[str, Any] = {} if expiry is None else {"expiry": expiry}
            write: Callable[..., Any] = getattr(store, operation.replace("-", "_"))
            done = write(*values, **more)
            if not store.await_idle(joining.timeout):
                raise click.ClickException(f"the master of {name!r} did not answer in {joining.timeout:g} s")
            if done is False:
                raise click.ClickException(f"{arguments[0]!r} is there already")


def _check_count(operation: str, count: int) -> None:
    fewest, most = _WRITES.get(operation) or (_READS.get(operation, 0),) * 2
    if not fewest <= count <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} or {most}"
        raise click.UsageError(f"{operation} takes {wanted} ARGUMENTs, there are {count}")


def _value(text: str) -> Value:
    try:  # what is JSON is never a string: a later increment would change nothing
        return from_json(loads(text.encode("utf-8", "surrogateescape")))
    except NotJson:
        return text
    except InvalidValue as error:
        raise click.UsageError(f"{text!r:.200}: {error}") from error


def _print_events(store: Store) -> None:
    with store, store.events() as events:
        for event in events:
            fields = event._asdict().items()
            click.echo(line({name: shown(value) for name, value in fields if value is not None}))
