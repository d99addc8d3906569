"""Shared by the commands: how a process joins the overlay, and values as text."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dafka.cli.numbers import Number, Seconds
from dafka.cli.options import common_options
from dafka.overlay import AddressError, Endpoint, Tls
from dafka.overlay.bridge.json_forms import from_json, loads, to_json
from dafka.overlay.bridge.zeek_objects import to_event
from dafka.overlay.errors import InvalidValue
from dafka.overlay.node.connections.tls import Secured
from dafka.overlay.node.types import parse_address
from dafka.overlay.values import Value
from dafka.overlay.wire.zeek import Event, from_value, to_value
from dafka.protocol.errors import MalformedMessage

FORMS = click.Choice(["json", "text"])

_PAUSE = 0.02


class Address(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """``HOST:PORT``."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parse_address(value)
        except AddressError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Id(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """The id of an endpoint, a UUID."""

    name = "uuid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(uuid.UUID(value))
        except ValueError:
            self.fail(f"{value!r} is not a UUID", param, ctx)


class Joining:
    """The options that describe the endpoint."""

    def __init__(
        self,
        listen: tuple[str, ...],
        peers: tuple[str, ...],
        id: str | None,
        timeout: float,
        tls: Secured,
        retry: float,
    ) -> None:
        self.listen = listen
        self.peers = peers
        self.id = id
        self.timeout = timeout
        self.tls = tls
        self.retry = retry

    def endpoint(self) -> Endpoint:
        """It listens, and tries to reach its peers from now on. Raises OSError, TlsError, InsecureAddress."""
        endpoint = Endpoint(listen=self.listen, id=self.id, tls=self.tls)
        try:
            for address in self.peers:
                endpoint.peer_nosync(address, retry=self.retry)
        except BaseException:
            endpoint.close()
            raise
        return endpoint

    def await_peers(self, endpoint: Endpoint) -> None:
        """Wait until all of --peer are peers, with --listen alone until anybody is; and for what they tell.

        So whom they know can be reached, and gets what is published.
        """
        ends = time.monotonic() + self.timeout
        while not self._is_joined(endpoint):
            if time.monotonic() > ends:
                missing = [peer.address for peer in endpoint.peers() if peer.status == "connecting"]
                who = ", ".join(filter(None, missing)) or "anybody"
                raise click.ClickException(
                    f"no peering with {who} within {self.timeout:g} s; --timeout allows more"
                )
            time.sleep(_PAUSE)
        if not endpoint.await_routes(max(0.0, ends - time.monotonic())):
            raise click.ClickException(
                f"a peer has not told whom it knows within {self.timeout:g} s; --timeout allows more"
            )

    def _is_joined(self, endpoint: Endpoint) -> bool:
        statuses = [peer.status for peer in endpoint.peers()]
        return "connecting" not in statuses and "peered" in statuses


_TIMEOUT = click.option(
    "--timeout",
    type=Seconds(),
    default=10.0,
    show_default=True,
    help="Seconds to wait for peers and answers.",
)


def joining_options(
    command: Callable[..., Any], timeout_option: Callable[[Any], Any] = _TIMEOUT
) -> Callable[..., Any]:
    """``--listen``, ``--peer``, ``--id``, ``--timeout`` and TLS; the command gets them as ``joining``."""

    @common_options
    @click.option(
        "--listen",
        multiple=True,
        type=Address(),
        metavar="HOST:PORT",
        help="Accept peers here; PORT 0 is any. May be given several times.",
    )
    @click.option(
        "--peer",
        "peers",
        multiple=True,
        type=Address(),
        metavar="HOST:PORT",
        help="Connect to this endpoint, a Zeek node for example. May be given several times.",
    )
    @click.option("--id", type=Id(), metavar="UUID", help="The id of this endpoint.  [default: a new one]")
    @timeout_option
    @click.option(
        "--retry",
        type=Number(0, 1e6, min_open=True),
        default=1.0,
        show_default=True,
        help="Seconds after which a peer that is not there is tried again.",
    )
    @click.option("--tls", is_flag=True, help="Encrypt, as Zeek does by default; without files anonymously.")
    @click.option(
        "--plain", is_flag=True, help="Do not encrypt. Within this machine, that is so if nothing is said."
    )
    @_pem("certificate", "A certificate in PEM, with its chain, that --cafile of the peers has signed.")
    @_pem("key", "Its key.")
    @click.option("--passphrase", default="", help="Of the key.")
    @_pem("cafile", "Who signs the certificates of peers.")
    @wraps(command)
    def wrapped(
        *args: Any,
        listen: tuple[str, ...],
        peers: tuple[str, ...],
        id: str | None,
        timeout: float,
        retry: float,
        tls: bool,
        plain: bool,
        certificate: str | None,
        key: str | None,
        passphrase: str,
        cafile: str | None,
        **kwargs: Any,
    ) -> Any:
        secured: Secured = "plain" if plain else "anonymous" if tls else None
        if plain and tls:
            raise click.UsageError("--tls and --plain contradict each other")
        if certificate or key or passphrase or cafile:
            if plain:
                raise click.UsageError("--plain has no use for certificates")
            if not certificate or not cafile:
                raise click.UsageError("TLS with certificates needs --certificate, --key and --cafile")
            secured = Tls(certfile=certificate, keyfile=key, password=passphrase or None, cafile=cafile)
        if not listen and not peers:
            raise click.UsageError("give --peer HOST:PORT, where another endpoint listens, or --listen")
        return command(*args, joining=Joining(listen, peers, id, timeout, secured, retry), **kwargs)

    return wrapped


def _pem(name: str, text: str) -> Callable[[Any], Any]:
    file = click.Path(exists=True, dir_okay=False)
    return click.option(f"--{name}", type=file, metavar="FILE", help=text)


def value_of(text: str, form: str) -> Value:
    """The value that an argument or a line stands for. Raises :class:`click.UsageError`."""
    if form == "text":
        return text
    try:
        parsed = loads(text.encode("utf-8", "surrogateescape"))
        event = to_event(parsed)
        return from_json(parsed) if event is None else to_value(event)
    except InvalidValue as error:
        raise click.UsageError(f"{text!r:.200}: {error}; --form text takes it as a string") from error


def shown(value: Value) -> Any:
    """JSON for a value; an event of Zeek's as an object."""
    try:
        message = from_value(value)
    except MalformedMessage:
        return to_json(value)
    if isinstance(message, Event):
        return {"event": message.name, "args": to_json(message.arguments)}
    return to_json(value)


def line(content: Any) -> str:
    """One line of JSON."""
    return json.dumps(content, ensure_ascii=False)
