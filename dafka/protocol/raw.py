"""RAW form: messages of ZeroMQ frames as octets, and as records.

ZPER keeps and serves messages in RAW form, each frame as ZMTP 2.0 writes it::

    flags (1 octet) | length (1 octet, or 8 octets big-endian if flags has LONG) | payload

MORE is set in the flags of every frame of a message but the last. RAW form as it is written here is
canonical: the short form up to 254 octets, the long form beyond. Reading takes either form for any length.

A message is a record: one frame is a value without a key, two frames are key and value. More frames are a
*marked* record: the header FRAMES says so, the value is the whole message in RAW form, and the key is its
first frame. A message that came in a form that is not canonical is marked as well, so that it comes back
octet by octet. The other way round every record is a message: a record without a key is one frame, one with a
key two, and null is an empty frame. A record with the header whose value is not one message in RAW form is
taken as if it had no header.

Positions are sums of the sizes of messages in RAW form and stay for ever, so what a record's message is must
never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from struct import unpack_from
from typing import NamedTuple

from dafka.protocol.batch_writer import Headers, encode_columns
from dafka.protocol.errors import MalformedMessage

MORE, LONG = 0x01, 0x02
SHORT_PAYLOAD = 254
"""The longest payload that is written in the short form; 255 octets have the long one."""

FRAMES = "zper.frames"
"""The header of a marked record; its value is the number of frames in ASCII digits, and is not looked at."""

Message = Sequence[bytes]

_SHORT_HEAD, _LONG_HEAD = 2, 9
_HEADS = [[bytes((flags, length)) for length in range(SHORT_PAYLOAD + 1)] for flags in (0, MORE)]
_LONG_FLAGS = bytes((LONG,))
_STRETCH = 8  # messages of one shape that make the short cut worth its while
_RETRY_GROWTH = 8
_BLOCK = 256


class RawError(MalformedMessage):
    """Octets that are not RAW form; ``cause`` is a short word for counting."""


class Records(NamedTuple):
    """Messages as the columns of :func:`dafka.protocol.batch_writer.encode_columns`."""

    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]


# -- messages <-> octets ------------------------------------------------------------------------


def encode_message(frames: Message) -> bytes:
    """One message of at least one frame in RAW form."""
    last = len(frames) - 1
    return b"".join(
        piece
        for number, frame in enumerate(frames)
        for piece in (_head(len(frame), MORE if number < last else 0), frame)
    )


def encode_messages(messages: Sequence[Message]) -> bytes:
    """Messages in RAW form, one behind the other."""
    if all(len(frames) == 1 for frames in messages):
        return encode_values([frames[0] for frames in messages])
    frames = list(chain.from_iterable(messages))
    more = bytearray((MORE,)) * len(frames)
    for end in accumulate(map(len, messages)):
        more[end - 1] = 0
    lengths = list(map(len, frames))
    pieces = [b""] * (2 * len(frames))
    if max(lengths) <= SHORT_PAYLOAD:
        last, others = _HEADS
        pieces[0::2] = [
            others[length] if flags else last[length] for length, flags in zip(lengths, more, strict=True)
        ]
    else:
        pieces[0::2] = map(_head, lengths, more)
    pieces[1::2] = frames
    return b"".join(pieces)


def message_sizes(messages: Sequence[Message]) -> list[int]:
    """The octets of each message in RAW form."""
    if all(len(frames) == 1 for frames in messages):
        return _single_sizes(list(map(len, chain.from_iterable(messages))))
    sizes = _single_sizes(list(map(len, chain.from_iterable(messages))))
    behind = list(accumulate(sizes, initial=0))
    ends = accumulate(map(len, messages), initial=0)
    return [behind[end] - behind[begin] for begin, end in pairwise(ends)]


def decode_messages(buffer: bytes, position: int = 0) -> tuple[list[list[bytes]], int]:
    """The whole messages from ``position`` on, and the position behind the last of them.

    A message whose end is not there is left for the next time. Raises :class:`RawError` for flags that no
    frame has, if no whole message stands before them.
    """
    messages: list[list[bytes]] = []
    _, position = _scan(buffer, position, messages)
    return messages, position


def count_messages(buffer: bytes, position: int = 0) -> tuple[int, int]:
    """How many whole messages there are from ``position`` on, and the position behind the last of them.

    As :func:`decode_messages`, also in what it raises, but nothing is copied.
    """
    return _scan(buffer, position, None)


def _scan(buffer: bytes, position: int, messages: list[list[bytes]] | None) -> tuple[int, int]:
    """Count the whole messages, and append their frames to ``messages``."""
    count = 0
    retry = _STRETCH
    frames: list[bytes] = []
    while True:
        alike, head, length = _stretch(buffer, position)
        if messages is not None:
            messages += [[value] for value in _payloads(buffer, position, alike, head, length)]
        count += alike
        position += alike * (head + length)
        before = count
        try:
            for end in _ends(buffer, position, None if messages is None else frames):
                if messages is not None:
                    messages.append(frames.copy())
                    frames.clear()
                count += 1
                position = end
                if count - before == retry:
                    break
            else:
                return count, position
        except RawError:
            if not count:
                raise
            return count, position
        retry *= _RETRY_GROWTH


def split_messages(buffer: bytes, position: int = 0) -> tuple[list[bytes], int]:
    """:func:`decode_messages`, but each message as the octets that it has there."""
    ends = [position]
    try:
        for end in _ends(buffer, position):
            ends.append(end)
    except RawError:
        if len(ends) == 1:
            raise
    return [buffer[start:end] for start, end in pairwise(ends)], ends[-1]


def _ends(buffer: bytes, position: int, frames: list[bytes] | None = None) -> Iterator[int]:
    """The position behind each whole message; the payloads of its frames are appended to ``frames``."""
    octets = len(buffer)
    start = position
    while start + _SHORT_HEAD <= octets:
        flags = buffer[start]
        if flags > MORE | LONG:
            raise RawError("flags", f"a frame with the flags {flags:#04x} at octet {start}")
        if flags & LONG:
            payload = start + _LONG_HEAD
            if payload > octets:
                return
            start = payload + int.from_bytes(buffer[payload - 8 : payload], "big")
        else:
            payload = start + _SHORT_HEAD
            start = payload + buffer[payload - 1]
        if start > octets:
            return
        if frames is not None:
            frames.append(buffer[payload:start])
        if not flags & MORE:
            yield start


def _payloads(buffer: bytes, position: int, count: int, head: int, length: int) -> list[bytes]:
    """The payloads of so many messages of one frame, whose heads and payloads have these sizes."""
    size = head + length
    values: list[bytes] = []
    form = f"{head}x{length}s"
    for first in range(0, count, _BLOCK):
        values += unpack_from(form * min(_BLOCK, count - first), buffer, position + first * size)
    return values


def _stretch(buffer: bytes, position: int) -> tuple[int, int, int]:
    """How many messages of one frame have the same head from ``position`` on, and the octets of that head and
    of each payload; no messages if they are few."""
    octets = _LONG_HEAD if buffer[position : position + 1] == _LONG_FLAGS else _SHORT_HEAD
    head = buffer[position : position + octets]
    if len(head) < octets or head[0] & ~LONG:
        return 0, octets, 0
    length = int.from_bytes(head[1:], "big")
    size = octets + length
    count = (len(buffer) - position) // size
    for place in range(octets):
        if count < _STRETCH or not buffer.startswith(head, position + size):
            return 0, octets, length
        column = buffer[position + place : position + count * size : size]
        if column != column[:1] * count:
            count = len(column) - len(column.lstrip(column[:1]))
    return (count if count >= _STRETCH else 0), octets, length


def _head(length: int, flags: int) -> bytes:
    if length <= SHORT_PAYLOAD:
        return bytes((flags, length))
    return bytes((flags | LONG,)) + length.to_bytes(8, "big")


def _frame_size(length: int) -> int:
    return length + (_SHORT_HEAD if length <= SHORT_PAYLOAD else _LONG_HEAD)


def encode_values(values: list[bytes]) -> bytes:
    """Messages of one frame each."""
    if not values:
        return b""
    lengths = list(map(len, values))
    length = lengths[0]
    if lengths.count(length) == len(lengths):
        head = _head(length, 0)
        return head + head.join(values)
    pieces = [b""] * (2 * len(values))
    pieces[0::2] = _heads(lengths, 0)
    pieces[1::2] = values
    return b"".join(pieces)


def _encode_pairs(firsts: list[bytes], seconds: list[bytes]) -> bytes:
    """Messages of two frames each."""
    pieces = [b""] * (4 * len(firsts))
    pieces[0::4] = _heads(list(map(len, firsts)), MORE)
    pieces[1::4] = firsts
    pieces[2::4] = _heads(list(map(len, seconds)), 0)
    pieces[3::4] = seconds
    return b"".join(pieces)


def _heads(lengths: list[int], flags: int) -> list[bytes]:
    if max(lengths) <= SHORT_PAYLOAD:
        return list(map(_HEADS[flags].__getitem__, lengths))
    return [_head(length, flags) for length in lengths]


def value_sizes(values: Sequence[bytes]) -> list[int]:
    """The octets of messages of one frame each in RAW form."""
    return _single_sizes(list(map(len, values)))


def _single_sizes(lengths: list[int]) -> list[int]:
    if not lengths or max(lengths) <= SHORT_PAYLOAD:
        return [length + _SHORT_HEAD for length in lengths]
    short, long = _SHORT_HEAD, _LONG_HEAD  # no call for each
    return [length + (short if length <= SHORT_PAYLOAD else long) for length in lengths]


# -- messages -> records ------------------------------------------------------------------------


def records_of_messages(messages: Sequence[Message]) -> Records:
    """The record that each message of at least one frame becomes."""
    count = len(messages)
    if all(len(frames) == 2 for frames in messages):
        keys, values = map(list, zip(*messages, strict=True)) if messages else ([], [])
        return Records(keys, values, [()] * count)
    if all(len(frames) == 1 for frames in messages):
        return Records([None] * count, [frames[0] for frames in messages], [()] * count)
    octets = encode_messages(messages)
    records = Records([], [], [])
    end = 0
    for frames, size in zip(messages, message_sizes(messages), strict=True):
        begin, end = end, end + size
        if len(frames) == 1:
            _add(records, None, frames[0])
        elif len(frames) == 2:
            _add(records, frames[0], frames[1])
        else:
            _add_marked(records, frames, octets[begin:end])
    return records


def records_of_octets(messages: Sequence[bytes]) -> Records:
    """The record of each message that is given in RAW form, canonical or not.

    Raises :class:`RawError` if one is not exactly one message.
    """
    records = Records([], [], [])
    for octets in messages:
        frames = _only_message(octets)
        if frames is None:
            raise RawError("message", f"{len(octets)} octets are not exactly one message")
        if len(frames) > 2 or encode_message(frames) != octets:
            _add_marked(records, frames, octets)
        else:
            _add(records, frames[0] if len(frames) == 2 else None, frames[-1])
    return records


def encode_bulk(messages: Sequence[Message], timestamp: int) -> bytes:
    """A record batch of at least one message; ``timestamp`` in ms."""
    return encode_columns([timestamp] * len(messages), *records_of_messages(messages))


def _add(records: Records, key: bytes | None, value: bytes) -> None:
    records.keys.append(key)
    records.values.append(value)
    records.headers.append(())


def _add_marked(records: Records, frames: Message, octets: bytes) -> None:
    records.keys.append(frames[0] if len(frames) > 1 else None)
    records.values.append(octets)
    records.headers.append(_mark(len(frames)))


@lru_cache(maxsize=_BLOCK)
def _mark(frames: int) -> Headers:
    return ((FRAMES, b"%d" % frames),)


# -- records -> messages ------------------------------------------------------------------------


def octets_of_records(
    keys: list[bytes | None], values: list[bytes | None], headers: Sequence[Headers]
) -> bytes:
    """The messages of records in RAW form, one behind the other."""
    if _are_plain(keys, headers):
        return encode_values(_without_nulls(values))
    if None not in keys and not any(headers):
        return _encode_pairs(keys, _without_nulls(values))  # type: ignore[arg-type]
    return b"".join(map(_octets_of_record, keys, values, headers))


def record_sizes(
    keys: list[bytes | None], values: list[bytes | None], headers: Sequence[Headers]
) -> list[int]:
    """The octets of each record's message in RAW form."""
    if _are_plain(keys, headers):
        return _single_sizes(list(map(len, _without_nulls(values))))
    if not any(headers):
        lengths = [len(value or b"") for value in values]
        return [
            _frame_size(length) if key is None else _frame_size(len(key)) + _frame_size(length)
            for key, length in zip(keys, lengths, strict=True)
        ]
    return [len(_octets_of_record(*record)) for record in zip(keys, values, headers, strict=True)]


def messages_of_records(
    keys: list[bytes | None], values: list[bytes | None], headers: Sequence[Headers]
) -> list[list[bytes]]:
    """The message of each record."""
    if _are_plain(keys, headers):
        return [[value] for value in _without_nulls(values)]
    return [
        _frames_if_marked(value, some) or _plain_frames(key, value)
        for key, value, some in zip(keys, values, headers, strict=True)
    ]


def _are_plain(keys: list[bytes | None], headers: Sequence[Headers]) -> bool:
    """Whether all messages have one frame, as far as can be told without looking at headers."""
    return keys.count(None) == len(keys) and not any(headers)


def _without_nulls(values: list[bytes | None]) -> list[bytes]:
    if None in values:
        return [value or b"" for value in values]
    return values  # type: ignore[return-value]


def _octets_of_record(key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    if headers and _frames_if_marked(value, headers) is not None:
        assert value is not None
        return value
    return encode_message(_plain_frames(key, value))


def _plain_frames(key: bytes | None, value: bytes | None) -> list[bytes]:
    return [value or b""] if key is None else [key, value or b""]


def _frames_if_marked(value: bytes | None, headers: Headers) -> list[bytes] | None:
    """The frames of a marked record's message; None if it is an ordinary record."""
    if value is None or not any(name == FRAMES for name, _ in headers):
        return None
    return _only_message(value)


def _only_message(octets: bytes) -> list[bytes] | None:
    """The frames of the one message that the octets are; None if they are anything else."""
    try:
        frames = list[bytes]()
        end = next(_ends(octets, 0, frames), -1)
    except RawError:
        return None
    return frames if end == len(octets) else None


__all__ = [
    "FRAMES",
    "LONG",
    "MORE",
    "SHORT_PAYLOAD",
    "Message",
    "RawError",
    "Records",
    "count_messages",
    "decode_messages",
    "encode_bulk",
    "encode_message",
    "encode_messages",
    "encode_values",
    "message_sizes",
    "messages_of_records",
    "octets_of_records",
    "record_sizes",
    "records_of_messages",
    "records_of_octets",
    "split_messages",
    "value_sizes",
]
