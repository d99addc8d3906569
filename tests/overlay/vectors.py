"""Messages recorded between nodes of libbroker, and between one and a plain socket."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "zeek-vectors.tsv"


class Vector(NamedTuple):
    name: str
    direction: str
    octets: bytes
    """As sent, with the length in front; empty for an event that is no message."""
    meaning: str

    @property
    def session(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def message(self) -> bytes:
        """Without its length."""
        return self.octets[4:]


@cache
def vectors() -> tuple[Vector, ...]:
    rows = [line.split("\t") for line in FILE.read_text(encoding="utf-8").split("\n")[1:] if line]
    return tuple([Vector(name, way, bytes.fromhex(octets), meaning) for name, way, octets, meaning in rows])


def native() -> list[Vector]:
    """Messages of the peer protocol: neither TLS nor WebSocket."""
    return [one for one in vectors() if one.octets and not one.name.startswith(("tls-", "ws-"))]


def named(name: str) -> Vector:
    (found,) = (one for one in vectors() if one.name == name)
    return found


def session(name: str) -> list[Vector]:
    """The messages of one connection, in order."""
    return [one for one in vectors() if one.session == name]
