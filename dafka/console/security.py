"""Which requests are refused: by host, by origin, changes; and what a browser may load.

A console on loopback is guarded by being reachable from this machine alone. Pages of others that are open in
the same browser reach it as well, so three things are looked at. The Host header must name this console
(against DNS rebinding). A change needs the header ``X-Dafka-Console``, which no form of another site can
send and no script of one may (the console answers no preflight). Nothing of the API must say that it comes
from another site (Sec-Fetch-Site, Origin): its answer could not be read there, but it costs what it costs.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from dafka.console.errors import ForbiddenError

CHANGE_HEADER = "X-Dafka-Console"
SAFE_METHODS = frozenset({"GET", "HEAD"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer. Scripts and styles come from files of the package only: no record can be one."""


def check_host(given: str, names: frozenset[str]) -> None:
    """Raise ForbiddenError unless the Host header names an address, this machine, or one of ``names``.

    An address in numbers cannot be rebound to another one by a name server.
    """
    try:
        host = (urlsplit(f"//{given}").hostname or "").lower()
    except ValueError:
        host = ""
    if host == "localhost" or host in names:
        return
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ForbiddenError(
            f"the Host {given!r} is not this console; name it with --host if it is reached by that name"
        ) from None


def check_site(headers: Headers) -> None:
    """Raise ForbiddenError for what another site asks for."""
    if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise ForbiddenError("another site has asked for this")
    origin = headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != headers.get("Host"):
        raise ForbiddenError(f"a page of {origin} has asked for this")


def check_change(headers: Headers, writes: bool) -> None:
    """Raise ForbiddenError for a change that this console does not make; :func:`check_site` comes first."""
    if CHANGE_HEADER not in headers:
        raise ForbiddenError(f"a change needs the header {CHANGE_HEADER}: 1")
    if not writes:
        raise ForbiddenError("this console is read-only: it listens beyond this machine without --write")
