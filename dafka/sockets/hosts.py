"""Hosts: which are this machine alone, how an address is written, and what the resolver is asked for."""

from __future__ import annotations

import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone, for certain: another name than "localhost" could be anybody's."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_and_port(host: str, port: int) -> str:
    """``HOST:PORT``, with IPv6 addresses in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_octets(host: str) -> bytes:
    """What the resolver is asked for. Raises OSError, as it does itself for a host that nobody knows.

    Given a str, getaddrinfo would raise UnicodeError for a label that is empty or too long, which gevent
    writes to standard error besides; and it reads octets up to the first NUL.
    """
    try:
        octets = host.encode("ascii" if host.isascii() else "idna")
    except UnicodeError as error:
        raise socket.gaierror(socket.EAI_NONAME, f"{host!r:.300} is not the name of a host") from error
    if b"\0" in octets:
        raise socket.gaierror(socket.EAI_NONAME, f"{host!r:.300} is not the name of a host")
    return octets
