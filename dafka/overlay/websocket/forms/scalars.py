"""The text forms of scalars: addresses, subnets, ports, times.

They are libbroker's, with three repairs: times keep their nanoseconds, times before 1970 are right, and a
network is masked by its length.
"""

from __future__ import annotations

import ipaddress
import re
from datetime import datetime, timedelta, timezone
from fractions import Fraction

from dafka.overlay.values.types import TCP, UNKNOWN, Address, Port, Subnet, Timespan, Timestamp
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.errors import InvalidForm

_EPOCH = datetime(1970, 1, 1)
_SECOND = 10**9
_MAPPED_BITS = 96  # in front of an IPv4 address
_LEAST, _MOST = -(2**63), 2**63 - 1
_PROTOCOLS = {"tcp": 1, "udp": 2, "icmp": 3}
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _SECOND, "min": 60 * _SECOND, "h": 3600 * _SECOND}

_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))?", re.ASCII
)
_TIMESPAN = re.compile(r"([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?)(ns|us|ms|s|min|h)", re.ASCII)
_PORT = re.compile(r"(\d{1,5})(?:/([a-z0-9?-]{1,20}))?", re.ASCII)
_SUBNET = re.compile(r"([0-9a-fA-F:.]{2,45})/(\d{1,3})", re.ASCII)


def timestamp_text(value: int) -> str:
    """``YYYY-MM-DDThh:mm:ss.fff`` in UTC, with six or nine digits where three would lose something."""
    seconds, nanoseconds = divmod(value, _SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    if nanoseconds % 10**6 == 0:
        return f"{text}.{nanoseconds // 10**6:03}"
    if nanoseconds % 10**3 == 0:
        return f"{text}.{nanoseconds // 10**3:06}"
    return f"{text}.{nanoseconds:09}"


def timestamp_of(text: str) -> Timestamp:
    """From ``YYYY-MM-DDThh:mm:ss`` with an optional fraction of up to nine digits and ``Z`` or ``+hh:mm``."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise InvalidForm(f"no timestamp: {text[:60]!r}")
    try:
        moment = datetime.fromisoformat(match[1])
        if match[3]:
            offset = timedelta(hours=int(match[4]), minutes=int(match[5]))
            moment = moment.replace(tzinfo=timezone(-offset if match[3] == "-" else offset))
            moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise InvalidForm(f"no timestamp: {text!r}: {error}") from error
    since = moment - _EPOCH
    nanoseconds = (since.days * 86400 + since.seconds) * _SECOND + int((match[2] or "").ljust(9, "0"))
    return Timestamp(_in_range(nanoseconds, text))


def timespan_text(value: int) -> str:
    """A whole number of the largest unit up to seconds that loses nothing."""
    for unit in ("s", "ms", "us"):
        number, rest = divmod(value, _UNITS[unit])
        if not rest:
            return f"{number}{unit}"
    return f"{int(value)}ns"


def timespan_of(text: str) -> Timespan:
    """From a number and ns, us, ms, s, min or h; rounded to nanoseconds."""
    match = _TIMESPAN.fullmatch(text) if len(text) <= limits.SPAN_CHARACTERS else None
    if match is None:
        raise InvalidForm(f"no timespan: {text[:60]!r}")
    return Timespan(_in_range(round(Fraction(match[1]) * _UNITS[match[2]]), text))


def port_of(text: str) -> Port:
    """From ``80/tcp``; without a protocol it is tcp, with one that Broker does not know, an unknown one."""
    match = _PORT.fullmatch(text)
    if match is None or int(match[1]) > 0xFFFF:
        raise InvalidForm(f"no port: {text[:60]!r}")
    return Port(int(match[1]), TCP if match[2] is None else _PROTOCOLS.get(match[2], UNKNOWN))


def address_of(text: str) -> Address:
    """From an IPv4 or IPv6 address without a zone."""
    try:
        if "%" not in text:
            return Address.of(text)
    except ValueError:
        pass
    raise InvalidForm(f"no address: {text[:60]!r}")


def subnet_text(value: Subnet) -> str:
    """``10.1.2.0/24``; one that reaches beyond the IPv4 addresses is written as one of IPv6."""
    if value.network.is_v4 and value.bits < _MAPPED_BITS:
        high, low = (int.from_bytes(value.network[at : at + 2], "big") for at in (12, 14))
        return f"::ffff:{high:x}:{low:x}/{value.bits}"
    return str(value)


def subnet_of(text: str) -> Subnet:
    """From an address and the length of its network; bits behind the network are left out."""
    match = _SUBNET.fullmatch(text)
    try:
        if match is not None:
            return Subnet.of(str(ipaddress.ip_network(text, strict=False)))
    except ValueError:
        pass
    raise InvalidForm(f"no subnet: {text[:60]!r}")


def _in_range(nanoseconds: int, text: str) -> int:
    if not _LEAST <= nanoseconds <= _MOST:
        raise InvalidForm(f"{text!r} is out of the range of 64 bits of nanoseconds")
    return nanoseconds
