"""Every record of a batch is examined: what is wrong is refused, and nothing that clients can read."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.material import codecs, of, of_sizes, plain, sealed

from dafka.protocol.batch import (
    HEADER_OCTETS,
    HEADERS_LIMIT,
    BatchError,
    check_batch,
    read_header,
)
from dafka.protocol.batch_body import Allowance
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_records import Examined, examine
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.compression import compress, decompress, is_available
from dafka.protocol.varint import encode_varint

INSTALLED = [name for name in codecs if name]
octets = st.none() | st.binary(max_size=30) | st.builds(bytes, st.integers(0, 5000))
record = st.tuples(
    st.sampled_from([-1, 1000, 1001, 1000 + 64, 10_000, 2**41]) | st.integers(-1, 2**41),
    octets,
    octets,
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
)


def cause(batch: bytes) -> str:
    with pytest.raises(BatchError) as caught:
        examine(batch)
    with pytest.raises(BatchError, match=caught.value.cause):
        examine(batch, None, Allowance(10**9))
    return caught.value.cause


def expected(batch: bytes) -> Examined:
    """What decoding finds."""
    columns = decode_batch(batch)
    times = [time for time in columns.timestamps if time != -1] or [-1]
    return Examined(min(times), max(columns.timestamps), None in columns.keys)


SHAPES = {
    "one record": [5],
    "no value": [0],
    "one size": [10] * 3000,
    "many of one size": [3] * 20_000,
    "large": [9000] * 20,
    "very large": [3_000_000, 1, 70_000, 2_000_000],
    "stretches": [10] * 50 + [200] * 100 + [10] * 7 + [11] + [300] * 64,
    "all different": list(range(500)),
    "by turns": [1, 100] * 200,
}


@pytest.mark.parametrize("codec", codecs)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_with_as_many_records_as_it_says_is_right(shape: str, codec: str | None) -> None:
    batch = of_sizes(*SHAPES[shape], codec=codec)
    assert examine(batch) == Examined(1000, 1000, True)
    assert examine(memoryview(batch), None, Allowance(10**9)) == Examined(1000, 1000, True)


@pytest.mark.parametrize("codec", codecs)
@pytest.mark.parametrize("more", [-1, 1, 7, 100])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_with_more_or_fewer_records_is_refused(shape: str, more: int, codec: str | None) -> None:
    sizes = SHAPES[shape]
    if len(sizes) + more > 0:
        body = of_sizes(*sizes)[HEADER_OCTETS:]
        if codec:
            body = compress(codec, body)
        assert cause(sealed(body, len(sizes) + more, codec)) == "records"


@pytest.mark.parametrize("codec", codecs)
@given(records=st.lists(record, min_size=1, max_size=30), repeated=st.integers(1, 40))
def test_examining_finds_what_decoding_finds(codec, records, repeated) -> None:
    batch = encode_batch(records * repeated, compression=codec)
    assert examine(batch) == expected(batch)


@pytest.mark.parametrize("step", [1, 7, 100, 1000])
@pytest.mark.parametrize("codec", ["gzip", None])
def test_pieces_may_end_anywhere(monkeypatch, codec, step) -> None:
    chance = random.Random(step)
    monkeypatch.setattr("dafka.protocol.batch_records._WINDOW", step)
    monkeypatch.setattr("dafka.protocol.batch_records._SMALL_WINDOW", step)
    monkeypatch.setattr("dafka.protocol.batch_body.Allowance.piece", step)
    for _ in range(30):
        batch = encode_batch(random_records(chance)[: max(20, step)], compression=codec)
        assert examine(batch, None, Allowance(10**9)) == expected(batch)


def random_records(chance: random.Random) -> list[tuple]:
    """Records alike in stretches, some with headers, at times that go on, or jump."""
    records: list[tuple] = []
    now = chance.choice((0, 5, 10**12))
    while not records or chance.random() < 0.7:
        key = chance.choice((None, b"", b"k" * 5, b"k" * 70))
        value = chance.choice((None, b"", b"v" * 50, b"v" * 300, b"v" * 1000))
        headers = chance.choice(((), (), (("a", b"b"), ("c", None)), (("n" * 100, b"x" * 100),) * 3))
        for _ in range(chance.choice((1, 3, 20, 200))):
            now = max(-1, now + chance.choice((0, 0, 1, 10, 100, -30)))
            if chance.random() < 0.01:
                now = chance.choice((-1, 0, 10**12, 2**41))
            records.append((now, key, value, headers))
    return records


def test_random_changes_are_refused_unless_clients_can_read_the_batch() -> None:
    """Decoding is the model: what it reads is examined alike, what it refuses is refused."""
    chance = random.Random(5)
    refused = 0
    for _ in range(1500):
        codec = chance.choice(codecs)
        original = encode_batch(random_records(chance)[:60])
        body = bytearray(original[HEADER_OCTETS:])
        count = check_batch(original).count
        for _ in range(chance.choice((1, 1, 2, 5))):
            change_something(chance, body)
        if chance.random() < 0.1:
            count = max(1, count + chance.choice((-1, 1)))
        packed = compress(codec, bytes(body)) if codec else bytes(body)
        if codec and chance.random() < 0.2:
            packed = packed[: -chance.randrange(1, len(packed))]
        batch = sealed(packed, count, codec, check_batch(original).base_timestamp)
        try:
            wanted = expected(batch)
        except (BatchError, UnicodeDecodeError):
            wanted = None
        try:
            found = examine(batch)
        except BatchError:
            refused += 1
            # An offset delta may jump for decoding, as compaction leaves it.
            assert wanted is None or decode_batch(batch).offsets != list(range(count))
        else:
            assert found == wanted or is_only_text_wrong(batch)
    assert 300 < refused < 1500


def test_numbers_in_more_octets_than_they_need_are_taken_where_clients_can_read_them(monkeypatch) -> None:
    chance = random.Random(11)
    refused = 0
    for _ in range(1000):
        count = chance.choice((1, 2, 20))
        batch = sealed(b"".join(of(padded_fields(chance, number)) for number in range(count)), count)
        monkeypatch.setattr("dafka.protocol.batch_records._WINDOW", chance.choice((3, 10, 50, 5000)))
        monkeypatch.setattr("dafka.protocol.batch_records._SMALL_WINDOW", chance.choice((3, 10, 50, 5000)))
        try:
            wanted = expected(batch)
        except BatchError:
            refused += 1
            assert cause(batch) == "records"
        else:
            assert examine(batch) == wanted
    assert 50 < refused < 500


def padded_fields(chance: random.Random, number: int) -> bytes:
    """The fields of a record, some of whose numbers are in more octets than they need."""

    def varint(number: int) -> bytes:
        *most, last = encode_varint(number)
        return bytes((*most, last | 0x80, 0)) if chance.random() < 0.01 else bytes((*most, last))

    def text(*choices: bytes | None) -> bytes:
        some = chance.choice(choices)
        return varint(-1) if some is None else varint(len(some)) + some

    headers = chance.choice((0, 0, 1, 3))
    named = [text(b"n" * 5, b"n" * 100) + text(None, b"", b"h" * 100) for _ in range(headers)]
    fields = varint(number), text(None, b"", b"k" * 70), text(None, b"v", b"v" * 300), varint(headers)
    return b"\0" + varint(chance.choice((0, 100))) + b"".join((*fields, *named))


def change_something(chance: random.Random, body: bytearray) -> None:
    if not body:
        return
    at = chance.randrange(len(body))
    kind = chance.randrange(4)
    if kind == 0:
        body[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        body[at] = chance.randrange(256)
    elif kind == 2:
        del body[at : at + chance.choice((1, 2, 50))]
    else:
        body[at:at] = chance.randbytes(chance.choice((1, 2)))


def is_only_text_wrong(batch: bytes) -> bool:
    """Brokers do not look into the names of headers."""
    with pytest.raises(BatchError) as caught:
        decode_batch(batch)
    return "codec can't decode" in str(caught.value)


# -- records ------------------------------------------------------------------------------------

WRONG_RECORDS = {
    "a size that is too small": of(b"\0\0\2\1\1\0", -1),
    "a size that is too large": of(b"\0\0\2\1\1\0", 1),
    "a negative size": encode_varint(-1) + b"\0\0\2\1\1\0",
    "a negative size of two octets": encode_varint(-100) + b"\0\0\2\1\1\0",
    "a size of too many octets": b"\x8c\x80\x80\x80\x80\0" + b"\0\0\2\1\1\0",
    "octets behind its headers": of(b"\0\0\2\1\1\0\0"),
    "a key that leads out of it": of(b"\0\0\2" + encode_varint(100) + b"\1\0"),
    "a key of -5 octets": of(b"\0\0\2" + encode_varint(-5) + b"\1\0"),
    "no key, which two octets say": of(b"\0\0\2\x81\0\1\0"),
    "no value, which two octets say": of(b"\0\0\2\1\x81\0\0"),
    "no value, which three octets say": of(b"\0\0\2\1\x81\x80\0\0"),
    "a header of nothing, which two octets say": of(b"\0\0\2\1\1\2\2a\x81\0"),
    "a value of -5 octets": of(b"\0\0\2\1" + encode_varint(-5) + b"\0"),
    "a value of -100 octets": of(b"\0\0\2\1" + encode_varint(-100) + b"\0"),
    "-1 headers": of(b"\0\0\2\1\1\1"),
    "too few headers": of(b"\0\0\2\1\1\4\2aa\1"),
    "too many headers": of(b"\0\0\2\1\1\2\2a\1\2a\1"),
    "more headers than octets": of(b"\0\0\2\1\1" + encode_varint(10_000)),
    "a header without a name": of(b"\0\0\2\1\1\2\1\1"),
    "a header of -7 octets": of(b"\0\0\2\1\1\2\0" + encode_varint(-7)),
    "an offset of too many octets": of(b"\0\0\x82\x80\x80\x80\x80\0\1\1\0"),
    "a time of too many octets": of(b"\0" + b"\x80" * 10 + b"\1\2\1\1\0"),
}


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("wrong", WRONG_RECORDS)
@pytest.mark.parametrize("behind", ["nothing", "more", "a piece's end"])
def test_a_wrong_record_is_refused(wrong: str, codec: str | None, behind: str, monkeypatch) -> None:
    body = plain(0) + WRONG_RECORDS[wrong]
    count = 2
    if behind != "nothing":
        body += b"".join(map(plain, range(2, 200)))
        count = 200
    if behind == "a piece's end":
        monkeypatch.setattr("dafka.protocol.batch_records._WINDOW", len(plain(0)) + 2)
        monkeypatch.setattr("dafka.protocol.batch_body.Allowance.piece", len(plain(0)) + 2)
    assert cause(sealed(compress(codec, body) if codec else body, count, codec)) == "records"


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("deltas", [[0, 0, 0], [2, 1, 0], [0, 1, 7], [-1, 0, 1], [1, 2, 3], [*range(99), 98]])
def test_offset_deltas_are_those_of_a_producer(deltas: list[int], codec: str | None) -> None:
    body = b"".join(map(plain, deltas))
    assert cause(sealed(compress(codec, body) if codec else body, len(deltas), codec)) == "offsets"


def test_times_before_the_first_one_are_found_in_stretches() -> None:
    for times in (
        [1000] * 20 + [3] * 20,
        [1000, 10_000, 9000] * 30,
        [*range(1000, 9000), *range(900, 0, -1)],
    ):
        batch = encode_batch([(time, b"k", b"v", ()) for time in times])
        assert examine(batch) == Examined(min(times), max(times), False)


def test_a_record_without_a_time_counts_only_if_none_has_one() -> None:
    for times, oldest, largest in (
        ([-1] * 30, -1, -1),
        ([-1, 5] * 30, 5, 5),
        ([100] * 30 + [-1] * 30, 100, 100),
    ):
        assert examine(encode_batch([(time, None, b"", ()) for time in times])) == (oldest, largest, True)


# -- streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", INSTALLED)
def test_a_stream_that_is_cut_is_refused(codec: str) -> None:
    batch = encode_batch([(1000, None, b"some text", ())] * 300)
    packed = compress(codec, batch[HEADER_OCTETS:])
    for cut in {1, 2, 3, 4, 5, 8, 9, 20, len(packed) // 2, len(packed)}:
        assert cause(sealed(packed[:-cut], 300, codec)) in ("compression", "records")


@pytest.mark.parametrize("codec", INSTALLED)
def test_octets_behind_a_stream_are_refused(codec: str) -> None:
    packed = compress(codec, plain(0))
    for behind in (b"xyz", bytes(40), compress(codec, b"x"), compress(codec, plain(1))):
        assert cause(sealed(packed + behind, 1, codec)) in ("compression", "records")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd"])
def test_streams_may_follow_each_other(codec: str) -> None:
    if not is_available(codec):
        pytest.skip(f"{codec} is not installed")
    first, second = compress(codec, b"".join(map(plain, range(50)))), compress(codec, plain(50) + plain(51))
    assert examine(sealed(first + second, 52, codec)).keyless
    assert cause(sealed(first + second[:-1], 52, codec)) in ("compression", "records")
    assert decompress(codec, first + second).endswith(plain(51))
    for streams in (compress(codec, b"") + first, first + compress(codec, b"")):
        assert examine(sealed(streams, 50, codec)).keyless


@pytest.mark.parametrize("codec", INSTALLED)
def test_a_stream_of_another_codec_is_refused(codec: str) -> None:
    for other in INSTALLED:
        if other != codec:
            assert cause(sealed(compress(other, plain(0)), 1, codec)) in ("compression", "records")


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_there_may_be_so_many_headers(monkeypatch, codec) -> None:
    monkeypatch.setattr("dafka.protocol.batch_records.HEADERS_LIMIT", 3000)
    for count in (HEADERS_LIMIT, 3001, 3000):
        body = of(b"\0\0\0\1\1" + encode_varint(count) + b"\0\1" * count)
        batch = sealed(compress(codec, body) if codec else body, 1, codec)
        if count > 3000:
            assert cause(batch) == "records"
        else:
            assert examine(batch).keyless
    two = b"".join(
        of(b"\0\0" + encode_varint(number) + b"\1\1" + encode_varint(2000) + b"\0\1" * 2000)
        for number in range(2)
    )
    assert cause(sealed(compress(codec, two) if codec else two, 2, codec)) == "records"


@pytest.mark.parametrize("value", [None, 0, 10, 100, 900])
@pytest.mark.parametrize("key", [None, 0, 5, 70])
@pytest.mark.parametrize("headers", [(), (("h", b"h"),)])
def test_a_lone_record_is_examined_as_others_are(monkeypatch, key, value, headers) -> None:
    """Whatever one octet of it is changed to, or if one is missing or too many."""

    def outcome(body: bytes, base: int) -> object:
        header = read_header(batch)._replace(base_timestamp=base)
        try:
            return examine(batch[:HEADER_OCTETS] + body, header)
        except BatchError as error:
            return error.cause

    batch = encode_batch([(1000, *(None if size is None else bytes(size) for size in (key, value)), headers)])
    body = batch[HEADER_OCTETS:]
    bodies = [body, body[:-1], body + b"\0", b"", body[:3]]
    front = [*range(min(len(body), 12)), *range(max(len(body) - 4, 0), len(body))]
    for at in front:
        for octet in (
            0,
            1,
            2,
            3,
            4,
            0x7F,
            0x80,
            0x81,
            0xFF,
            body[at] ^ 1,
            body[at] + 1 & 0xFF,
            body[at] ^ 0x80,
        ):
            bodies.append(body[:at] + bytes([octet]) + body[at + 1 :])
    found = [outcome(one, base) for one in bodies for base in (1000, 0, -1)]
    monkeypatch.setattr("dafka.protocol.batch_records._lone", lambda body, base: None)
    assert found == [outcome(one, base) for one in bodies for base in (1000, 0, -1)]
    assert "records" in found
    assert (1000, 1000, key is None) in found
