"""Commands to a ZPReader and its responses: the documented octets, and every wrong shape."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.zper.commands import (
    EARLIEST,
    LATEST,
    Fetch,
    InvalidCommandError,
    InvalidResponseError,
    Offset,
    RefusedError,
    Status,
    fetch_request,
    fetch_response,
    offset_request,
    offsets_response,
    parse_request,
    read_offsets,
    read_stream_start,
    read_super_frame,
    status,
)

LONG = st.integers(-(2**63), 2**63 - 1)


def eight(value: int) -> bytes:
    return struct.pack(">q", value)


def four(value: int) -> bytes:
    return struct.pack(">i", value)


@pytest.mark.parametrize(
    ("frames", "request_"),
    [
        ([b"OFFSET", b"\xff" * 7 + b"\xfe"], Offset(EARLIEST, None)),
        ([b"OFFSET", b"\xff" * 8], Offset(LATEST, None)),
        ([b"OFFSET", eight(1_700_000_000_000)], Offset(1_700_000_000_000, None)),
        ([b"OFFSET", eight(5), four(3)], Offset(5, 3)),
        ([b"OFFSET", eight(5), four(0)], Offset(5, None)),
        ([b"OFFSET", eight(5), four(-1)], Offset(5, None)),
        ([b"FETCH", eight(7), eight(100)], Fetch(7, 100)),
        ([b"FETCH", eight(7), eight(0)], Fetch(7, 0)),
        ([b"FETCH", eight(7), eight(-1)], Fetch(7, None)),
        ([b"FETCH", eight(-(2**63)), eight(2**63 - 1)], Fetch(-(2**63), 2**63 - 1)),
    ],
)
def test_a_request_is_parsed(frames: list[bytes], request_: Offset | Fetch):
    assert parse_request(frames) == request_


@pytest.mark.parametrize(
    ("frames", "cause"),
    [
        ([], "empty"),
        ([b""], "unknown"),
        ([b"offset", eight(-1)], "unknown"),
        ([b"OFFSET ", eight(-1)], "unknown"),
        ([b"STORE" * 1000, eight(-1)], "unknown"),
        ([b"\xff\xfe"], "unknown"),
        ([b"OFFSET"], "argument-count"),
        ([b"OFFSET", eight(1), four(1), four(1)], "argument-count"),
        ([b"FETCH"], "argument-count"),
        ([b"FETCH", eight(1)], "argument-count"),
        ([b"FETCH", eight(1), eight(1), b""], "argument-count"),
        ([b"OFFSET", b""], "argument-size"),
        ([b"OFFSET", b"-1"], "argument-size"),
        ([b"OFFSET", four(-1)], "argument-size"),
        ([b"OFFSET", eight(1) + b"x"], "argument-size"),
        ([b"OFFSET", eight(1), eight(1)], "argument-size"),
        ([b"OFFSET", eight(1), b""], "argument-size"),
        ([b"FETCH", four(1), eight(1)], "argument-size"),
        ([b"FETCH", eight(1), four(1)], "argument-size"),
        ([b"FETCH", eight(1), eight(-2)], "size"),
        ([b"FETCH", eight(1), eight(-(2**63))], "size"),
    ],
    ids=str,
)
def test_a_request_of_a_wrong_shape_has_an_error_that_names_the_cause(frames: list[bytes], cause: str):
    with pytest.raises(InvalidCommandError) as raised:
        parse_request(frames)
    assert raised.value.cause == cause
    assert raised.value.status is Status.INVALID_COMMAND
    assert len(str(raised.value)) < 200


@given(st.lists(st.sampled_from([b"OFFSET", b"FETCH"]) | st.binary(max_size=9), max_size=4))
def test_any_frames_are_a_request_or_an_error_of_ours(frames: list[bytes]):
    try:
        found = parse_request(frames)
    except InvalidCommandError:
        return
    assert isinstance(found, (Offset, Fetch))


@given(LONG, st.none() | st.integers(1, 2**31 - 1))
def test_a_server_reads_the_offset_request_of_a_client(time: int, entries: int | None):
    assert parse_request(offset_request(time, entries)) == Offset(time, entries)


@given(st.integers(0, 2**63 - 1), st.none() | st.integers(0, 2**63 - 1))
def test_a_server_reads_the_fetch_request_of_a_client(position: int, size: int | None):
    assert parse_request(fetch_request(position, size)) == Fetch(position, size)


def test_a_client_does_not_send_numbers_that_are_out_of_range():
    for wrong in (lambda: fetch_request(-1), lambda: fetch_request(0, -1), lambda: fetch_request(2**63)):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ValueError, match="time is 9223372036854775808; it is a whole number of 8 octets"):
        offset_request(2**63)
    with pytest.raises(ValueError, match="entries is 2147483648"):
        offset_request(0, 2**31)


def test_statuses_have_the_octets_that_java_clients_compare():
    assert [status(code) for code in Status] == [b"\x64", b"\x65", b"\x66", b"\xff"]


@given(st.lists(st.integers(0, 2**63 - 1), max_size=5))
def test_a_client_reads_the_positions_of_a_server(positions: list[int]):
    assert read_offsets(offsets_response(positions)) == positions


def test_no_positions_are_the_status_invalid_offset():
    assert offsets_response([]) == [b"\x65"]


@given(st.binary(max_size=50))
def test_a_client_reads_the_super_frame_of_a_server(octets: bytes):
    assert read_super_frame(fetch_response(octets)) == octets


@pytest.mark.parametrize("code", [Status.INVALID_OFFSET, Status.INVALID_COMMAND, Status.INTERNAL_ERROR])
def test_a_status_other_than_ok_is_an_error_that_has_it(code: Status):
    for read in (read_super_frame, read_stream_start):
        with pytest.raises(RefusedError, match=rf"{code.name} \({code.value}\): FETCH: ") as raised:
            read([status(code)])
        assert raised.value.status is code
    read_stream_start([status(Status.OK)])


@pytest.mark.parametrize("frames", [[], [b""], [b"OK"], [b"\x00"], [b"\x64\x64"]], ids=str)
def test_a_response_without_a_known_status_is_refused(frames: list[bytes]):
    for read in (read_offsets, read_super_frame, read_stream_start):
        with pytest.raises(InvalidResponseError) as raised:
            read(frames)
        assert raised.value.cause == "status"


def test_a_response_with_other_frames_than_the_request_has_is_refused():
    ok = status(Status.OK)
    for read, frames in (
        (read_offsets, [ok, b"7 octet"]),
        (read_super_frame, [ok]),
        (read_super_frame, [ok, b"", b""]),
        (read_stream_start, [ok, b""]),
    ):
        with pytest.raises(InvalidResponseError):
            read(frames)
