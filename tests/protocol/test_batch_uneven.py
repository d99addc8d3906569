"""Records of one make but of many sizes are found together, and no wrong ones with them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crc32c import crc32c

from dafka.protocol import batch_records
from dafka.protocol.batch import CRC_END, CRC_START, HEADER, HEADER_OCTETS, LENGTH_END, BatchError
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_records import Examined, examine
from dafka.protocol.batch_uneven import find_uneven
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.varint import encode_varint

BASE = 10**12
TRACED = (("trace", b"0123456789abcdef"), ("b", None), ("", b""))


@pytest.fixture
def found(monkeypatch) -> list[int]:
    """How many records were found together, each time."""
    numbers: list[int] = []

    def counted(*args: Any) -> Any:
        uneven = find_uneven(*args)
        numbers.append(0 if uneven is None else uneven.records)
        return uneven

    monkeypatch.setattr(batch_records, "find_uneven", counted)
    return numbers


def expected(batch: bytes) -> Examined:
    """What decoding finds."""
    columns = decode_batch(batch)
    times = [time for time in columns.timestamps if time != -1] or [-1]
    return Examined(min(times), max(columns.timestamps), None in columns.keys)


def one_by_one(batch: bytes) -> Examined | str:
    """What is found without looking at many records together; the cause if it is refused."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch_records, "FEWEST", 1 << 40)
        return outcome(batch)


def outcome(batch: bytes) -> Examined | str:
    try:
        return examine(batch)
    except BatchError as error:
        return error.cause


def sealed(body: bytes, count: int) -> bytes:
    length = HEADER_OCTETS - LENGTH_END + len(body)
    head = HEADER.pack(0, length, -1, 2, 0, 0, count - 1, BASE, BASE, -1, -1, -1, count)
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body


# -- right ones ---------------------------------------------------------------------------------

KEYS: dict[str, Callable[[random.Random], bytes | None]] = {
    "none": lambda chance: None,
    "of one length": lambda chance: b"key%04d" % chance.randrange(10_000),
    "of many lengths": lambda chance: b"k" * chance.randrange(64),
    "some": lambda chance: chance.choice((None, b"", b"key")),
}
SIZES = {"small": (0, 40), "around 64": (45, 70), "hundreds": (50, 300), "thousands": (500, 8000)}
TIMES: dict[str, Callable[[int], int]] = {
    "one": lambda number: 0,
    "that go on": lambda number: number // 10,
    "that go on fast": lambda number: 30 * number,
    "of four octets": lambda number: 1_100_000 * (number > 0) + number,
    "out of order": lambda number: 100 + number * 7919 % 5000,
    "before the first one": lambda number: -5000 * (number > 0) - number * 7919 % 3000,
}


def random_batch(
    chance: random.Random, key: str, size: str, times: str, headers: tuple[Any, ...], count: int
) -> bytes:
    return encode_batch(
        [
            (BASE + TIMES[times](number), KEYS[key](chance), bytes(chance.randint(*SIZES[size])), headers)
            for number in range(count)
        ]
    )


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("headers", [(), TRACED])
def test_records_of_one_make_are_examined_together(key: str, size: str, headers, found) -> None:
    chance = random.Random(f"{key}{size}")
    batch = random_batch(chance, key, size, "that go on", headers, 1500)
    assert examine(batch) == expected(batch)
    mixed = size == "around 64" or (size == "small" and (headers or "many" in key))
    assert mixed or sum(found) > 1000


@pytest.mark.parametrize("times", TIMES)
def test_their_first_and_last_time_is_found(times: str, found) -> None:
    batch = random_batch(random.Random(times), "of one length", "hundreds", times, (), 2000)
    assert examine(batch) == expected(batch)
    assert sum(found) > 1000


def test_a_record_without_a_time_counts_only_if_none_has_one(found) -> None:
    for base, times in ((-1, (-1,)), (-1, (-1, 5)), (500, (600, 700, -1)), (500, (500, 600, -1))):
        chance = random.Random(base)
        records = [(chance.choice(times), None, bytes(chance.randrange(60, 200)), ()) for _ in range(1000)]
        batch = encode_batch([(base, None, b"", ()), *records])
        assert examine(batch) == expected(batch)
    assert len(found) >= 4


@pytest.mark.parametrize("count", [63, 64, 65, 191, 192, 193, 8191, 8192, 8193, 8400])
def test_offset_deltas_may_get_longer(count: int, found) -> None:
    batch = random_batch(random.Random(count), "none", "hundreds", "that go on", (), count)
    assert examine(batch) == expected(batch)
    assert sum(found) > count - 1000


def test_a_single_record_without_a_key_is_found(found) -> None:
    for keyless in (64, 500, 999):
        chance = random.Random(keyless)
        keys = [None if number == keyless else b"key" for number in range(1000)]
        batch = encode_batch([(BASE, key, bytes(chance.randint(80, 300)), ()) for key in keys])
        assert examine(batch).keyless
    assert sum(found) > 2000


def test_their_headers_are_counted(monkeypatch, found) -> None:
    monkeypatch.setattr(batch_records, "HEADERS_LIMIT", 3000)
    for count, wanted in ((1000, Examined(BASE, BASE + 99, True)), (1001, "records")):
        batch = random_batch(random.Random(1), "none", "hundreds", "that go on", TRACED, count)
        assert outcome(batch) == wanted
    assert sum(found) > 1000


def test_records_of_other_makes_may_be_among_them(found) -> None:
    chance = random.Random(2)
    for _ in range(40):
        records: list[tuple[Any, ...]] = []
        while len(records) < 1500:
            key, size = chance.choice([*KEYS]), chance.choice(["small", "around 64", "hundreds"])
            headers = chance.choice(((), TRACED, (("n" * 100, b"x"),), (("id", b"%d" % len(records)),)))
            for _ in range(chance.choice((1, 1, 130, 500))):
                value = None if chance.random() < 0.002 else bytes(chance.randint(*SIZES[size]))
                now = len(records) // 10 if chance.random() < 0.998 else 9000
                records.append((BASE + now, KEYS[key](chance), value, headers))
        batch = encode_batch(records)
        assert examine(batch) == expected(batch) == one_by_one(batch)
    assert sum(found) > 5000


# -- wrong ones ---------------------------------------------------------------------------------


def fields_of(
    chance: random.Random, number: int, key: str, size: tuple[int, int], headers: int
) -> list[bytes]:
    """The fields of a record, whose size is the first one."""
    name = KEYS[key](chance)
    value = bytes(chance.randint(*size))
    fields = [b"\0", encode_varint(100 + number // 10), encode_varint(number)]
    fields += [
        encode_varint(-1 if name is None else len(name)),
        name or b"",
        encode_varint(len(value)),
        value,
    ]
    fields += [encode_varint(headers), *[b"\x0a", b"trace", b"\x20", bytes(16)] * headers]
    return [encode_varint(sum(map(len, fields))), *fields]


def padded(varint: bytes) -> bytes:
    return varint[:-1] + bytes((varint[-1] | 0x80, 0))


def longer(varint: bytes, more: int) -> bytes:
    """The varint of a number that is larger by ``more``, if it takes as many octets."""
    number = int.from_bytes(varint, "little")
    low, high = number & 0x7F, number >> 8
    zigzag = (low | high << 7) + 2 * more
    if zigzag < 0 or len(varint) > 2 or zigzag >> 7 * len(varint):
        return varint
    return bytes((zigzag,)) if len(varint) == 1 else bytes((zigzag & 0x7F | 0x80, zigzag >> 7))


def changes(chance: random.Random, fields: list[bytes]) -> Iterator[list[bytes]]:
    """The fields of a record with one of them changed, sometimes so that its size is right again."""
    varints = [0, 2, 3, 4, 6, 8, *range(9, len(fields), 2)]
    for place in varints:
        for changed in (
            padded(fields[place]),
            longer(fields[place], chance.choice((-1, 1, -64, 64))),
            fields[place][:-1] + bytes((fields[place][-1] ^ 1,)),
            bytes((fields[place][0] ^ 1, *fields[place][1:])),
            b"\x01",
            b"\x81\0",
        ):
            other = [*fields]
            other[place] = changed
            yield other
            if place:
                yield [encode_varint(sum(map(len, other[1:]))), *other[1:]]
    for attributes in (b"\1", b"\x80", b"\xff"):
        yield [fields[0], attributes, *fields[2:]]


@pytest.mark.parametrize("headers", [0, 2])
@pytest.mark.parametrize("key", ["none", "of one length", "of many lengths"])
@pytest.mark.parametrize("size", [(0, 30), (50, 300)])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_wrong_record_is_treated_as_if_it_came_alone(key, size, headers, place, found) -> None:
    chance = random.Random(f"{key}{size}{headers}{place}")
    count = 400
    records = [fields_of(chance, number, key, size, headers) for number in range(count)]
    refused = 0
    for _ in range(2):
        number = {"first": 64, "middle": chance.randrange(200, 300), "last": count - 1}[place]
        before = b"".join(map(b"".join, records[:number]))
        behind = b"".join(map(b"".join, records[number + 1 :]))
        for changed in changes(chance, records[number]):
            batch = sealed(before + b"".join(changed) + behind, count)
            result = outcome(batch)
            assert result == one_by_one(batch)
            if isinstance(result, str):
                refused += 1
            else:
                assert result == expected(batch)
    assert refused > 20
    assert size == (0, 30) or sum(found) > 1000


@pytest.mark.parametrize("octets", [1, 2, 3, 8, 60, 64, 65, 66, 127, 8200])
def test_lengths_that_lead_out_of_the_batch_are_refused(octets: int) -> None:
    """In one record, or in the last ones, which are as small as they can be."""
    chance = random.Random(octets)
    count = 400
    for last in (1, 30):
        records = [fields_of(chance, number, "of many lengths", (0, 30), 0) for number in range(count)]
        for fields in records[-last:]:
            fields[4], fields[5] = encode_varint(octets), b""
        body = b"".join(map(b"".join, records))
        for cut in (0, 1, 2):
            batch = sealed(body[: len(body) - cut], count)
            assert outcome(batch) == one_by_one(batch) == "records"


def test_attributes_are_not_taken_for_a_part_of_the_size() -> None:
    """A size of one octet, and attributes that together with it were a size of two."""
    chance = random.Random(3)
    count = 400
    records = [b"".join(fields_of(chance, number, "none", (0, 30), 0)) for number in range(count)]
    _, *fields = fields_of(chance, 250, "none", (90, 90), 0)
    size = sum(map(len, fields))
    for attributes in (0, 1):
        records[250] = encode_varint(size - 64) + bytes((attributes,)) + b"".join(fields[1:])
        assert outcome(sealed(b"".join(records), count)) == "records"


def test_a_key_that_leads_into_the_next_record_is_refused() -> None:
    """Also where it ends at what looks like the length of a value that takes 8 KiB less as much."""
    chance = random.Random(4)
    count = 400
    records = [fields_of(chance, number, "of many lengths", (80, 200), 0) for number in range(count)]
    for key in range(30, 64):
        fields = [b"\0", encode_varint(125), encode_varint(250), encode_varint(key), b"key", b"\0"]
        for shift in (0, 1):
            _, *following = fields_of(chance, 251, "none", (100, 100), 0)
            out = key - len(b"key\0")
            number = encode_varint(8192 - out)
            following[5] = (number[shift:] + 100 * number)[:100]
            records[250] = [encode_varint(sum(map(len, fields))), *fields]
            records[251] = [encode_varint(sum(map(len, following))), *following]
            assert outcome(sealed(b"".join(map(b"".join, records)), count)) == "records"


def test_random_changes_are_treated_as_if_records_came_alone(found) -> None:
    chance = random.Random(9)
    refused = 0
    for _ in range(300):
        key = chance.choice([*KEYS])
        headers = chance.choice(((), TRACED))
        batch = random_batch(chance, key, "hundreds", "that go on", headers, 300)
        body = bytearray(batch[HEADER_OCTETS:])
        for _ in range(chance.choice((1, 3))):
            at = chance.randrange(len(body))
            if chance.random() < 0.8:
                while body[at] == 0 and chance.random() < 0.9:  # values are zeros
                    at = chance.randrange(len(body))
                body[at] ^= 1 << chance.randrange(8)
            else:
                del body[at : at + chance.choice((1, 2))]
        changed = sealed(bytes(body), 300)
        result = outcome(changed)
        assert result == one_by_one(changed)
        refused += isinstance(result, str)
    assert 100 < refused < 290
    assert sum(found) > 10_000
