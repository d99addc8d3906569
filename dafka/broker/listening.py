"""The options ``listen`` and ``advertised``: the broker's addresses, and those that clients are told."""

from __future__ import annotations

import ipaddress
import logging
from typing import NamedTuple

from dafka.sockets.hosts import is_loopback

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
"""Kafka's names of what is spoken at a port."""


class Listen(NamedTuple):
    """An interface and a port (0: any), and the address for clients ("" and 0: the one listened on)."""

    host: str
    port: int
    advertised_host: str = ""
    advertised_port: int = 0
    protocol: str = PLAINTEXT

    @property
    def is_secure(self) -> bool:
        """Whether there is TLS on it."""
        return self.protocol in (SSL, SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        """Whether clients say there who they are, by SASL."""
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)

    @property
    def is_open(self) -> bool:
        """Whether others read there what is sent: it has no TLS, and is not on loopback."""
        return not self.is_secure and not is_loopback(self.host)


def parse_listeners(listen: str, advertised: str | None) -> tuple[Listen, ...]:
    """One listener (``HOST:PORT``), or several with a protocol each: ``PLAINTEXT://HOST:PORT,SSL://HOST:PORT``.

    ``advertised`` has the same form, or is the host of all. Raises ValueError.
    """
    listeners = dict(_by_protocol("listen", listen))
    if advertised is None or "://" not in advertised:
        if advertised is not None and len(listeners) > 1 and _address("advertised", advertised, False)[1]:
            raise ValueError(
                f"advertised={advertised!r} has one port for {len(listeners)} listeners: "
                "give PROTOCOL://HOST:PORT for each"
            )
        told: dict[str, str | None] = dict.fromkeys(listeners, advertised)
    else:
        told = dict(_by_protocol("advertised", advertised))
        for protocol in told:
            if protocol not in listeners:
                raise ValueError(f"advertised={advertised!r}: there is no {protocol} listener in {listen!r}")
    return tuple(
        parse_listen(address, told.get(protocol))._replace(protocol=protocol)
        for protocol, address in listeners.items()
    )


def _by_protocol(option: str, text: object) -> list[tuple[str, str]]:
    parts = text.split(",") if isinstance(text, str) and "://" in text else [text]
    found: list[tuple[str, str]] = []
    for part in parts:
        if not isinstance(part, str) or "://" not in part:
            if len(parts) > 1:
                raise ValueError(
                    f"{option}={text!r}: each of several has a protocol, as PLAINTEXT://HOST:PORT"
                )
            found.append((PLAINTEXT, part))  # type: ignore[arg-type]  # is refused as an address
            continue
        protocol, _, address = part.strip().partition("://")
        if protocol.upper() not in PROTOCOLS:
            raise ValueError(f"{option}={text!r}: {protocol!r} is not one of {', '.join(PROTOCOLS)}")
        if any(protocol.upper() == other for other, _ in found):
            raise ValueError(f"{option}={text!r} has {protocol.upper()} more than once")
        found.append((protocol.upper(), address))
    return found


def parse_listen(listen: str, advertised: str | None) -> Listen:
    """The options as users write them. Raises ValueError."""
    host, port = _address("listen", listen, True)
    known, known_port = _address("advertised", advertised, False) if advertised else ("", 0)
    if not known and _is_wildcard(host):
        raise ValueError(
            f"listen={listen!r} is every interface, to which nobody can connect: say with "
            "advertised='HOST' or 'HOST:PORT' what clients are told"
        )
    if known and _is_wildcard(known):
        raise ValueError(f"advertised={advertised!r} is not an address that clients can connect to")
    return Listen(host, port, known, known_port)


def client_host(listen: Listen, bound_host: str) -> str:
    """The host for clients: the advertised one, else a name as it was given, else the bound address."""
    if listen.advertised_host:
        return listen.advertised_host
    if listen.host.lower() == "localhost" or _is_address(listen.host):
        return bound_host
    return listen.host


def warn_if_open(listen: Listen, host: str, port: int, has_acls: bool = False) -> None:
    """Log what a listener without TLS that is not on loopback exposes; ``host`` and ``port`` are told.

    ``has_acls``: whether clients may do only what access control lists allow.
    """
    if not listen.is_open:
        return
    may = "do what User:ANONYMOUS may" if has_acls else "read, write and delete"
    what = f"everybody who reaches it may {may}, and everybody on the way reads it"
    if listen.has_sasl:
        what = (
            "everybody on the way reads what is sent, and takes passwords and tokens of PLAIN and OAUTHBEARER"
        )
    log.warning(
        "%s://%s:%d has no TLS and is not on loopback: %s; SASL_SSL:// keeps them out",
        *(listen.protocol, host, port, what),
    )


def _address(option: str, text: str, port_needed: bool) -> tuple[str, int]:
    host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not colon and not port_needed:
        host, port = text, "0"
    elif not port_needed and host.count(":") and not host.endswith("]"):
        host, port = text, "0"  # an IPv6 address without brackets and port
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not _is_host(host) or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{option} is 'HOST:PORT' with a port from 0 to 65535, not {text!r}")
    return host, int(port)


def _is_host(host: str) -> bool:
    """Whether this may be a name or an address; clients take what they are told, and fail later."""
    if ":" in host:
        return _is_address(host)
    return bool(host) and not any(sign.isspace() or sign in "/@,[]" for sign in host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_wildcard(host: str) -> bool:
    return host == "*" or (_is_address(host) and ipaddress.ip_address(host).is_unspecified)
