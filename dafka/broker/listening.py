"""The options ``listen`` and ``advertised``: the broker's address, and the one that clients are told."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

LOOPBACK = "127.0.0.1"


class Listen(NamedTuple):
    """An interface and a port (0: any), and the address for clients ("" and 0: the one listened on)."""

    host: str
    port: int
    advertised_host: str = ""
    advertised_port: int = 0


def parse_listen(listen: str, advertised: str | None) -> Listen:
    """The options as users write them. Raises ValueError."""
    host, port = _address("listen", listen, port_needed=True)
    known, known_port = _address("advertised", advertised, port_needed=False) if advertised else ("", 0)
    if not known and _is_wildcard(host):
        raise ValueError(
            f"listen={listen!r} is every interface, which is no address to connect to: say with "
            "advertised='HOST' or 'HOST:PORT' what clients are told"
        )
    if known and _is_wildcard(known):
        raise ValueError(f"advertised={advertised!r} is no address that clients can connect to")
    return Listen(host, port, known, known_port)


def client_host(listen: Listen, bound_host: str) -> str:
    """The host for clients: the advertised one, else a name as it was given, else the bound address."""
    if listen.advertised_host:
        return listen.advertised_host
    if listen.host.lower() == "localhost" or _is_address(listen.host):
        return bound_host
    return listen.host


def _address(option: str, text: str, *, port_needed: bool) -> tuple[str, int]:
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
