"""The attributes of a certificate's subject as they are encoded (X.509 in DER), for those that have no short
name: Java writes them as numbers and octets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dafka.security.errors import TlsError

_VERSION, _BEFORE_SUBJECT = 0xA0, 4  # serial number, algorithm, issuer, validity


class Attribute(NamedTuple):
    """The number of its kind, as text, and its value with type and length."""

    kind: str
    value: bytes


def attributes(certificate: bytes) -> list[list[Attribute]]:
    """The attributes of each part of the subject, in their order. Raises :class:`TlsError`."""
    try:
        whole = _content(certificate)
        parts = list(_items(_content(whole)))
        subject = parts[_BEFORE_SUBJECT + (parts[0][0] == _VERSION)]
        return [
            [Attribute(_number(_content(kind)), value) for kind, value in map(_pair, _items(_content(part)))]
            for part in _items(_content(subject))
        ]
    except (IndexError, ValueError) as error:
        raise TlsError("the subject of a certificate cannot be read") from error


def _pair(attribute: bytes) -> tuple[bytes, bytes]:
    kind, value = _items(_content(attribute))
    return kind, value


def _items(octets: bytes) -> Iterator[bytes]:
    """The values that follow each other, each with its type and length."""
    while octets:
        begin, size = _measured(octets)
        yield octets[: begin + size]
        octets = octets[begin + size :]


def _content(value: bytes) -> bytes:
    """What the first value contains."""
    begin, size = _measured(value)
    return value[begin : begin + size]


def _measured(value: bytes) -> tuple[int, int]:
    """Where the content of the first value begins, and its size."""
    size, begin = value[1], 2
    if size & 0x80:
        count = size & 0x7F
        size, begin = int.from_bytes(value[2 : 2 + count], "big"), 2 + count
    if begin + size > len(value):
        raise ValueError("cut off")
    return begin, size


def _number(octets: bytes) -> str:
    """An object identifier: ``1.2.840...``."""
    numbers, number = [], 0
    for octet in octets:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
