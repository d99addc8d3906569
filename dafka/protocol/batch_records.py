"""Examines every record of a batch from anywhere, as Kafka does before it takes one.

A batch whose records are not exactly those that its header counts could not be read by those who fetch it. So
each record is read as far as its structure goes: its fields end where its size says, offset deltas are
0, 1, 2, ..., no length is negative where it may not be, and nothing follows the last record. What a broker
needs of them comes along: the first and the last of their timestamps, and whether one lacks a key.

Nothing is kept: a body is read in pieces, unfolded one after the other if it is compressed, and values are
passed over. Records of one shape are examined together (:mod:`dafka.protocol.batch_stretch`), some
nanoseconds each. So are many records of one make but of different sizes (:mod:`dafka.protocol.batch_uneven`),
some 400 nanoseconds each. Others are read in one loop, up to three times as long, and a record that lies
across two pieces field by field.

The work is bounded by what is counted: octets and parts (:mod:`dafka.protocol.compression`), records and
headers. It may still be seconds: see :mod:`dafka.protocol.batch_body`.
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.protocol.batch import (
    COMPRESSION_MASK,
    HEADER_OCTETS,
    HEADERS_LIMIT,
    BatchError,
    BatchHeader,
    read_header,
)
from dafka.protocol.batch_body import Plain, Source, Unfolding, Work
from dafka.protocol.batch_stamps import Stamps
from dafka.protocol.batch_stretch import SHORTEST, deltas_alike, find_stretch
from dafka.protocol.batch_uneven import FEWEST, find_uneven
from dafka.protocol.compression import decompressed
from dafka.protocol.varint import decode_varint

_AT_ONCE = 1024  # records or headers that are read before others have their turn
_GROWTH = 8
_FEW = 8  # records for which a copy of the batch, of 10 MB perhaps, would cost more than it saves
_WINDOW, _SMALL_WINDOW = 1024 * 1024, 1024  # octets that are copied at once
_STRETCH_WORK = 10
_UNEVEN_WORK = 20
_REACH = 256
_UNFOLDING_WORK = 10
_OCTETS_OF_WORK = 14  # the power of two of octets that are copied in a microsecond


class Examined(NamedTuple):
    """The first and the last of the timestamps that the producer gave a batch's records, in ms, and whether
    a record lacks a key. That a record has no timestamp (-1) counts only if none has one."""

    oldest: int
    largest: int
    keyless: bool


def examine(
    content: bytes | memoryview, header: BatchHeader | None = None, work: Work | None = None
) -> Examined:
    """Examine all records of a batch. ``header``: that of the batch, if it was read before.

    Raises :class:`BatchError` where something is wrong: its cause is ``codec`` if only the codec is not
    installed, ``size`` if it unfolds to too much, ``compression`` if it cannot be unfolded, ``offsets`` for
    offset deltas other than 0, 1, 2, ..., else ``records``. Raises TooMuchWorkError as ``work`` does.
    """
    if header is None:
        header = read_header(content)
    if work is None:
        work = Work()
    if header.count == 1 and not header.attributes & COMPRESSION_MASK and len(content) <= _SMALL_WINDOW:
        found = _lone(bytes(content[HEADER_OCTETS:]), header.base_timestamp)
        if found is not None:
            return found
    body = memoryview(content)[HEADER_OCTETS:]
    if not header.attributes & COMPRESSION_MASK:
        work.spend(len(body) >> _OCTETS_OF_WORK)
        source = Source(Plain(body, _SMALL_WINDOW if header.count <= _FEW else _WINDOW))
    else:
        work.spend(_UNFOLDING_WORK)
        pieces = decompressed(header.compression or "", bytes(body), work.piece)
        source = Source(Unfolding(pieces, work))
    return _Examination(source, header, work).run()


def _lone(body: bytes, base: int) -> Examined | None:
    """What there is in a body of one record without headers. None if there may be anything else in it.

    Clients that wait for each answer send such batches, and the whole examination is a score of calls.
    """
    try:
        size, at = body[0], 1
        if size >= 0x80:
            size, at = size & 0x7F | body[1] << 7, 2
        stamp, delta, key = body[at + 1], body[at + 2], body[at + 3]  # behind the attributes
        if size & 1 or at + (size >> 1) != len(body) or stamp >= 0x80 or delta or key >= 0x80:
            return None
        at += 4
        if key != 1:
            if key & 1:
                return None
            at += key >> 1
        value, at = body[at], at + 1
        if value >= 0x80:
            value, at = value & 0x7F | body[at] << 7, at + 1
        if value != 1:
            if value & 1:
                return None
            at += value >> 1
        if at != len(body) - 1 or body[at]:
            return None
    except IndexError:
        return None
    timestamp = base + ((stamp >> 1) ^ -(stamp & 1))
    return Examined(timestamp, timestamp, key == 1)


class _Examination:
    """One batch."""

    def __init__(self, source: Source, header: BatchHeader, work: Work) -> None:
        self._source = source
        self._header = header
        self._work = work
        self._headers = HEADERS_LIMIT  # that may still come
        self._stamps = Stamps(header.base_timestamp)
        self._keyless = False
        self._reach = _REACH  # records of one make that are looked for at once
        self._pause = SHORTEST  # ... and how many others are read before it is tried again
        self._next_uneven = 0

    def run(self) -> Examined:
        count, source = self._header.count, self._source
        done, retry = 0, SHORTEST
        try:
            while done < count:
                if source.is_at_end():
                    raise ValueError("no more octets")
                together = self._read_together(done, count)
                if together:
                    done += together
                    retry = SHORTEST
                    continue
                until = min(done + retry, count)
                while done < until:
                    done = self._read(done, min(until, done + _AT_ONCE))
                retry *= _GROWTH
            if not source.is_at_end():
                raise ValueError("octets follow the last record")
        except (IndexError, ValueError) as error:
            if isinstance(error, BatchError):
                raise
            raise BatchError("records", str(error)) from error
        return Examined(self._stamps.oldest, self._stamps.largest, self._keyless)

    # -- many records together ------------------------------------------------------------------

    def _read_together(self, done: int, count: int) -> int:
        """Examine many records at once, from number ``done`` on: how many; 0 if they are of many makes."""
        if count - done < SHORTEST:
            return 0
        try:
            return self._read_stretch(done, count) or self._read_uneven(done, count)
        except (
            IndexError
        ):  # a record lies across the end of the buffer, or is longer than those that are looked for
            return 0

    def _read_stretch(self, done: int, count: int) -> int:
        """:meth:`_read_together` for those of one shape."""
        stretch = find_stretch(self._source.buffer, self._source.position, done, count)
        if stretch is None:
            return 0
        self._work.spend(_STRETCH_WORK + (stretch.records >> 5))
        self._see_all(tuple(column[: stretch.records] for column in stretch.stamps))
        self._keyless = self._keyless or stretch.key_length < 0
        self._source.position = stretch.stop
        return stretch.records

    def _read_uneven(self, done: int, count: int) -> int:
        """:meth:`_read_together` for those of one make. What it costs grows with how many are looked for, so
        these are as many as were found lately, or some more."""
        reach = min(self._reach, count - done, deltas_alike(done))
        if done < self._next_uneven or reach < FEWEST:
            return 0
        self._work.spend(_UNEVEN_WORK + (3 * reach >> 3))
        uneven = find_uneven(self._source.buffer, self._source.position, done, reach)
        if uneven is None:
            self._reach, self._next_uneven = _REACH, done + self._pause
            self._pause *= _GROWTH
            return 0
        records, headers = uneven.records, uneven.records * uneven.headers
        self._check_headers(headers, 2 * headers)
        self._headers -= headers
        self._see_all(uneven.stamps)
        self._keyless = self._keyless or uneven.keyless
        self._source.position = uneven.stop
        self._pause = SHORTEST
        self._reach = min(max(2 * records, _REACH), _AT_ONCE)
        return records

    def _see_all(self, stamps: tuple[bytes, ...]) -> None:
        if not self._stamps.see_ends(stamps):
            self._work.spend(len(stamps[0]) >> 1)
            self._stamps.see_each(stamps)

    # -- record by record -----------------------------------------------------------------------

    def _read(self, done: int, until: int) -> int:
        """Examine records from number ``done`` up to ``until``; the number of the next one."""
        self._work.spend((until - done) >> 1)
        done = self._read_whole(done, until)
        if done < until:
            self._read_across(done)
            done += 1
        return done

    def _read_whole(self, done: int, until: int) -> int:
        """Examine those that are in the buffer as a whole."""
        source, varint = self._source, _varint32
        buffer, position = source.buffer, source.position
        size, stamp, keyless, headers = len(buffer), -1, False, 0
        begin = position
        try:
            for delta in range(2 * done, 2 * until, 2):  # as zigzag has it
                # Each field: the octet itself if it is a whole varint, else two octets, else the general way.
                octet = buffer[position]
                if octet < 0x80:
                    end = position + 1 + (octet >> 1)
                    position += 2  # the attributes are passed over
                elif (high := buffer[position + 1]) < 0x80:
                    end = position + 2 + ((octet & 0x7F | high << 7) >> 1)
                    position += 3
                else:
                    length, position = varint(buffer, position)
                    if length < 0:
                        raise ValueError("a record of a negative size")
                    octet = 0
                    end = position + length
                    position += 1
                if octet & 1:
                    raise ValueError("a record of a negative size")
                if end > size:
                    break
                octet = buffer[position]
                if octet < 0x80:
                    position += 1
                elif (high := buffer[position + 1]) < 0x80:
                    octet = octet & 0x7F | high << 7
                    position += 2
                else:
                    number, position = decode_varint(buffer, position)
                    octet = number << 1 if number >= 0 else ~(number << 1)
                if octet != stamp:
                    stamp = octet
                    self._stamps.see(stamp)
                octet = buffer[position]
                if octet < 0x80:
                    position += 1
                elif (high := buffer[position + 1]) < 0x80:
                    octet = octet & 0x7F | high << 7
                    position += 2
                else:
                    number, position = varint(buffer, position)
                    octet = number << 1 if number >= 0 else ~(number << 1)
                if octet != delta:
                    raise _wrong_offset(octet, delta)
                octet = buffer[position]
                if octet == 1:
                    keyless = True
                    position += 1
                elif octet < 0x80 and not octet & 1:
                    position += 1 + (octet >> 1)
                else:
                    length, position = varint(buffer, position)
                    if length < 0:
                        raise ValueError(f"a key of {length} octets")
                    position += length
                octet = buffer[position]
                if octet < 0x80:
                    position += 1 + (octet >> 1)
                elif (high := buffer[position + 1]) < 0x80 and not octet & 1:
                    position += 2 + ((octet & 0x7F | high << 7) >> 1)
                else:
                    length, position = varint(buffer, position)
                    if length < 0:
                        raise ValueError(f"a value of {length} octets")
                    octet = 0
                    position += length
                if octet & 1 and octet != 1:
                    raise ValueError("a value of a negative length")
                octet = buffer[position]
                if not octet:
                    position += 1
                elif octet < 0x80 and not octet & 1:
                    few = octet >> 1
                    headers += few
                    position, read = _pass_headers(buffer, position + 1, few)
                    if read < few:
                        break
                else:
                    position = self._read_headers(buffer, position)
                if position != end:
                    raise _wrong_end(position - end)
                begin = position
                done += 1
        except IndexError:  # the last record is not there as a whole, or its fields lead out of it
            pass
        source.position = begin
        self._keyless = self._keyless or keyless
        if headers:
            self._check_headers(headers, 2 * headers)
            self._headers -= headers
            self._work.spend(headers >> 2)
        return done

    def _read_headers(self, buffer: bytes, position: int) -> int:
        """The position behind the headers of a record that is in the buffer as a whole."""
        count, position = _varint32(buffer, position)
        self._check_headers(count, len(buffer) - position)
        left = count
        while left:
            some = min(left, _AT_ONCE)
            position, read = _pass_headers(buffer, position, some)
            if read < some:
                raise IndexError
            left -= some
            self._work.spend(some >> 2)
        self._headers -= count
        return position

    def _check_headers(self, count: int, octets: int) -> None:
        if not 0 <= count <= octets >> 1:
            raise ValueError(f"{count} headers in {octets} octets")
        if count > self._headers:
            raise ValueError(f"more than {HEADERS_LIMIT} headers")

    def _read_across(self, number: int) -> None:
        """Examine a record that lies across the end of the buffer, or leads out of the batch."""
        source = self._source
        size = source.varint(_varint32)
        if size < 0:
            raise ValueError("a record of a negative size")
        end = source.passed + size
        source.skip(1)  # the attributes
        delta = source.varint(decode_varint)
        self._stamps.see(delta << 1 if delta >= 0 else ~(delta << 1))
        delta = source.varint(_varint32)
        if delta != number:
            raise _wrong_offset(delta << 1 if delta >= 0 else ~(delta << 1), number << 1)
        if _pass(source, "a key", -1, end) < 0:
            self._keyless = True
        _pass(source, "a value", -1, end)
        left = count = source.varint(_varint32)
        self._check_headers(count, end - source.passed)
        while left:
            self._work.spend(min(left, _AT_ONCE) >> 2)
            source.position, read = _pass_headers(source.buffer, source.position, min(left, _AT_ONCE))
            left -= read
            if not read:  # it lies across the end of the buffer
                _pass(source, "a header name", 0, end)
                _pass(source, "a header", -1, end)
                left -= 1
        self._headers -= count
        if source.passed != end:
            raise _wrong_end(source.passed - end)


_VARINT32_OCTETS = 5


def _varint32(buffer: bytes, position: int) -> tuple[int, int]:
    """:func:`decode_varint` for what has 32 bits: Kafka's clients refuse longer ones."""
    number, behind = decode_varint(buffer, position)
    if behind - position > _VARINT32_OCTETS:
        raise ValueError(f"a varint of more than {_VARINT32_OCTETS} octets")
    return number, behind


def _wrong_offset(found: int, wanted: int) -> BatchError:
    """Both as zigzag has them."""
    return BatchError("offsets", f"record {wanted >> 1} has offset delta {(found >> 1) ^ -(found & 1)}")


def _wrong_end(octets: int) -> ValueError:
    where = "behind" if octets > 0 else "in front of"
    return ValueError(f"the fields of a record end {abs(octets)} octets {where} its end")


def _pass(source: Source, what: str, least: int, end: int) -> int:
    """Pass over a field with its length in front; that length. Where there is none, one octet says so."""
    before = source.passed
    length = source.varint(_varint32)
    if length < least or (length < 0 and source.passed - before > 1):
        raise ValueError(f"{what} of {length} octets")
    if length > 0:
        if source.passed + length > end:
            raise _wrong_end(source.passed + length - end)
        source.skip(length)
    return length


def _pass_headers(buffer: bytes, position: int, count: int) -> tuple[int, int]:
    """Pass over so many headers, or as many as are in the buffer: the position behind them, their number."""
    size, start, passed = len(buffer), position, 0
    try:
        for number in range(1, count + 1):
            octet = buffer[position]
            if octet < 0x80 and not octet & 1:
                position += 1 + (octet >> 1)
            else:
                length, position = _varint32(buffer, position)
                if length < 0:
                    raise ValueError(f"a header name of {length} octets")
                position += length
            octet = buffer[position]
            if octet == 1:
                position += 1
            elif octet < 0x80 and not octet & 1:
                position += 1 + (octet >> 1)
            else:
                length, position = _varint32(buffer, position)
                if length < 0:
                    raise ValueError(f"a header of {length} octets")
                position += length
            if position > size:
                break
            start, passed = position, number
    except IndexError:  # the next one is not in the buffer as a whole
        pass
    return start, passed
