"""RAW form: messages of frames as octets, as records, and back."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.material import codecs, octets, record_lists

from dafka.protocol import raw
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

payloads = st.one_of(
    st.binary(max_size=20),
    st.sampled_from((0, 1, 253, 254, 255, 256, 300)).map(lambda size: b"p" * size),
)
messages_of_frames = st.lists(payloads, min_size=1, max_size=4)
bulks = st.one_of(
    st.lists(messages_of_frames, min_size=1, max_size=20),
    # Many messages of one shape, which have short cuts of their own.
    st.builds(
        lambda before, frames, count, behind: [*before, *[frames] * count, *behind],
        st.lists(messages_of_frames, max_size=2),
        st.lists(payloads, min_size=1, max_size=2),
        st.integers(1, 600),
        st.lists(messages_of_frames, max_size=2),
    ),
)


def longhand(frames: list[bytes], long_form: set[int]) -> bytes:
    """A message in RAW form; the frames with these numbers have the long form."""
    pieces = []
    for number, frame in enumerate(frames):
        more = number < len(frames) - 1
        if number in long_form or len(frame) > 255:
            pieces.append(bytes([more | 2]) + len(frame).to_bytes(8, "big") + frame)
        else:
            pieces.append(bytes([more, len(frame)]) + frame)
    return b"".join(pieces)


odd_messages = st.builds(longhand, messages_of_frames, st.sets(st.integers(0, 3)))


def records_of(batch: bytes) -> tuple[list, list, list]:
    columns = decode_batch(batch)
    return columns.keys, columns.values, columns.headers


# -- the form -----------------------------------------------------------------------------------


def test_frames_have_flags_length_and_payload():
    assert raw.encode_message([b"id", b"value"]) == b"\x01\x02id\x00\x05value"


def test_a_frame_of_254_octets_is_short_and_one_of_255_is_long():
    assert raw.encode_message([b"x" * 254])[:2] == b"\x00\xfe"
    assert raw.encode_message([b"x" * 255])[:9] == b"\x02" + (255).to_bytes(8, "big")


def test_five_octets_take_seven():
    assert raw.message_sizes([[b"12345"]]) == [7]


@given(bulks)
def test_messages_come_back_as_they_were(messages):
    octets = raw.encode_messages(messages)
    assert raw.decode_messages(octets) == (messages, len(octets))
    assert raw.count_messages(octets) == (len(messages), len(octets))
    assert raw.message_sizes(messages) == [len(raw.encode_message(frames)) for frames in messages]
    assert octets == b"".join(map(raw.encode_message, messages))


@given(st.lists(odd_messages, max_size=5))
def test_either_form_is_read_for_any_length(pieces):
    octets = b"".join(pieces)
    assert raw.split_messages(octets) == (pieces, len(octets))
    messages, end = raw.decode_messages(octets)
    assert end == len(octets)
    assert raw.count_messages(octets) == (len(messages), len(octets))
    assert [[frames] for frames in messages] == [raw.decode_messages(piece)[0] for piece in pieces]


@given(bulks, st.data())
def test_a_message_that_is_cut_is_left_for_the_next_time(messages, data):
    octets = raw.encode_messages(messages)
    cut = data.draw(st.integers(0, len(octets)))
    ends = list(accumulate(raw.message_sizes(messages), initial=0))
    whole = sum(end <= cut for end in ends) - 1
    assert raw.decode_messages(octets[:cut]) == (messages[:whole], ends[whole])
    assert raw.count_messages(octets[:cut]) == (whole, ends[whole])
    pieces = [octets[start:end] for start, end in pairwise(ends)]
    assert raw.split_messages(octets[:cut]) == (pieces[:whole], ends[whole])


@given(bulks, bulks)
def test_reading_begins_at_a_position(before, messages):
    start = len(raw.encode_messages(before))
    octets = raw.encode_messages([*before, *messages])
    assert raw.decode_messages(octets, start) == (messages, len(octets))
    assert raw.count_messages(octets, start) == (len(messages), len(octets))


@pytest.mark.parametrize("flags", [4, 8, 255])
def test_other_flags_are_an_error_behind_the_messages_before_them(flags):
    wrong = bytes([flags, 1]) + b"x"
    with pytest.raises(raw.RawError, match=f"{flags:#04x} at octet 0"):
        raw.decode_messages(wrong)
    with pytest.raises(raw.RawError):
        raw.split_messages(wrong)
    with pytest.raises(raw.RawError):
        raw.count_messages(wrong)
    good = raw.encode_message([b"good"])
    assert raw.decode_messages(good + wrong) == ([[b"good"]], len(good))
    assert raw.count_messages(good + wrong) == (1, len(good))
    assert raw.split_messages(good + wrong) == ([good], len(good))


def test_a_length_beyond_all_memory_is_waited_for():
    assert raw.decode_messages(b"\x02" + b"\xff" * 8 + b"x" * 50) == ([], 0)


# -- messages as records ------------------------------------------------------------------------


def test_one_frame_is_a_value_and_two_are_key_and_value():
    assert raw.records_of_messages([[b"v"], [b"k", b"v"]]) == ([None, b"k"], [b"v", b"v"], [(), ()])


def test_more_frames_are_marked_and_keep_the_first_one_as_key():
    keys, values, headers = raw.records_of_messages([[b"id", b"a", b"b"]])
    assert keys == [b"id"]
    assert values == [b"\x01\x02id\x01\x01a\x00\x01b"]
    assert headers == [((raw.FRAMES, b"3"),)]


@given(bulks)
def test_messages_come_back_from_the_batch_that_they_are_written_as(messages):
    records = records_of(raw.encode_bulk(messages, 1000))
    assert raw.messages_of_records(*records) == messages
    assert raw.octets_of_records(*records) == raw.encode_messages(messages)
    assert raw.record_sizes(*records) == raw.message_sizes(messages)


@given(st.lists(odd_messages, min_size=1, max_size=10))
def test_messages_in_any_form_come_back_octet_by_octet(pieces):
    columns = raw.records_of_octets(pieces)
    records = records_of(encode_batch([(1, *record) for record in zip(*columns, strict=True)]))
    assert raw.octets_of_records(*records) == b"".join(pieces)
    assert raw.record_sizes(*records) == list(map(len, pieces))
    assert raw.messages_of_records(*records) == [raw.decode_messages(piece)[0][0] for piece in pieces]


@given(bulks)
def test_canonical_octets_become_the_same_records_as_messages(messages):
    assert raw.records_of_octets(list(map(raw.encode_message, messages))) == raw.records_of_messages(messages)


@pytest.mark.parametrize(
    "octets", [b"", b"\x00", b"\x01\x01x", b"\x00\x01x\x00", b"\x00\x01x\x00\x01y", b"\x04\x00"]
)
def test_octets_that_are_not_one_message_make_no_record(octets):
    with pytest.raises(raw.RawError, match="not exactly one message"):
        raw.records_of_octets([octets])


# -- any records as messages --------------------------------------------------------------------


def plain(key: bytes | None, value: bytes | None) -> list[bytes]:
    return [value or b""] if key is None else [key, value or b""]


def test_null_is_an_empty_frame():
    assert raw.messages_of_records([None, b"k"], [None, None], [[], []]) == [[b""], [b"k", b""]]
    assert raw.octets_of_records([None, b"k"], [None, None], [[], []]) == b"\x00\x00" + b"\x01\x01k\x00\x00"
    assert raw.record_sizes([None, b"k"], [None, None], [[], []]) == [2, 5]


@given(record_lists, st.sampled_from(codecs))
def test_every_record_is_a_message_of_one_or_two_frames(records, codec):
    columns = records_of(encode_batch(records, compression=codec))
    expected = [plain(key, value) for _, key, value, _ in records]
    assert raw.messages_of_records(*columns) == expected
    assert raw.octets_of_records(*columns) == b"".join(map(raw.encode_message, expected))
    assert raw.record_sizes(*columns) == [len(raw.encode_message(frames)) for frames in expected]


@pytest.mark.parametrize("value", [None, b"", b"anything", b"\x01\x01x", b"\x00\x01x\x00\x01y"])
def test_a_mark_on_anything_but_one_message_counts_for_nothing(value):
    records = ([b"k"], [value], [[(raw.FRAMES, b"3")]])
    assert raw.messages_of_records(*records) == [[b"k", value or b""]]
    assert raw.octets_of_records(*records) == raw.encode_message([b"k", value or b""])
    assert raw.record_sizes(*records) == [len(raw.encode_message([b"k", value or b""]))]


@given(st.lists(st.tuples(st.none() | octets, st.none() | octets), min_size=1, max_size=20))
def test_other_headers_change_nothing(pairs):
    keys, values = map(list, zip(*pairs, strict=True))
    headers = [[("other", b"x")]] * len(pairs)
    none = [[]] * len(pairs)
    assert raw.octets_of_records(keys, values, headers) == raw.octets_of_records(keys, values, none)
    assert raw.record_sizes(keys, values, headers) == raw.record_sizes(keys, values, none)
    assert raw.messages_of_records(keys, values, headers) == raw.messages_of_records(keys, values, none)


def test_no_messages_take_no_octets():
    assert raw.encode_messages([]) == b""
    assert raw.message_sizes([]) == []
    assert raw.octets_of_records([], [], []) == b""
    assert raw.record_sizes([], [], []) == []
    assert raw.decode_messages(b"") == ([], 0)
