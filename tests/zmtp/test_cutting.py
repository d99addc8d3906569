"""Messages cut out of octets."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zmtp.vectors import command, frame, message

from dafka.zmtp import limits
from dafka.zmtp.cutting import Cutter
from dafka.zmtp.encoding import encode_all
from dafka.zmtp.errors import FramingError, ProtocolError, TooLargeError

LIMIT = 1 << 20


def everything(cutter: Cutter, most: int = 1000) -> list[list[bytes] | bytes]:
    """Messages as lists, commands as bytes."""
    found: list[list[bytes] | bytes] = []
    while cutter.pending:
        messages, body = cutter.cut(most)
        assert len(messages) <= most
        found += map(list, messages)
        if body is not None:
            found.append(body)
    return found


def cut(octets: bytes, pieces: list[int] | None = None, most: int = 1000) -> list[list[bytes] | bytes]:
    """What comes out if the octets arrive in pieces that end at these positions."""
    cutter = Cutter(LIMIT, 4096)
    found: list[list[bytes] | bytes] = []
    begin = 0
    for end in [*(pieces or []), len(octets)]:
        cutter.feed(octets[begin:end])
        found += everything(cutter, most)
        begin = end
    assert not cutter.in_progress
    assert cutter.held == 0
    return found


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (b"\x00\x00", [[b""]]),
        (b"\x00\x05hello", [[b"hello"]]),
        (b"\x01\x00\x00\x05hello", [[b"", b"hello"]]),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00\x05hello", [[b"hello"]]),  # long though short, which is allowed
        (b"\x03\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x01b", [[b"a", b"b"]]),
        (b"\x00\xff" + b"x" * 255, [[b"x" * 255]]),
        (b"\x02\x00\x00\x00\x00\x00\x00\x01\x00" + b"x" * 256, [[b"x" * 256]]),
        (b"\x04\x05\x04PING", [b"\x04PING"]),
        (b"\x06\x00\x00\x00\x00\x00\x00\x00\x05\x04PING", [b"\x04PING"]),
    ],
)
def test_frames_are_those_of_the_specification(octets: bytes, expected: list[list[bytes] | bytes]):
    assert cut(octets) == expected


def sample(seed: int) -> tuple[bytes, list[list[bytes] | bytes]]:
    """Runs of equal messages, unequal ones, long frames and commands between them, and between frames."""
    dice = random.Random(seed)
    octets, expected = b"", []
    for _ in range(dice.randrange(1, 8)):
        kind = dice.randrange(5)
        if kind == 0:
            body = dice.randbytes(dice.randrange(20))
            octets += command(body)
            expected.append(body)
            continue
        frames = [
            dice.randbytes(dice.choice([0, 1, 7, 100, 255, 256, 300])) for _ in range(dice.randrange(1, 6))
        ]
        for _ in range(dice.randrange(1, 5) if kind > 2 else 1):
            if kind == 4 and len(frames) > 1:  # a command may come between the frames of a message
                octets += frame(frames[0], True) + command(b"\x04PONG") + message(*frames[1:])
                expected += [b"\x04PONG", frames]
            else:
                octets += message(*frames)
                expected.append(frames)
        if dice.random() < 0.1:
            frames = [dice.randbytes(limits.GROWING_OCTETS + dice.randrange(1000))]
            octets += message(*frames)
            expected.append(frames)
    return octets, expected


@pytest.mark.parametrize("seed", range(40))
def test_a_stream_torn_anywhere_gives_the_same_messages(seed: int):
    octets, expected = sample(seed)
    assert cut(octets) == expected
    dice = random.Random(seed)
    positions = range(1, len(octets)) if len(octets) < 3000 else dice.sample(range(1, len(octets)), 300)
    for position in positions:
        assert cut(octets, [position]) == expected
    for most in (1, 2, 3):
        assert cut(octets, sorted(dice.sample(range(len(octets)), min(7, len(octets)))), most) == expected
    if len(octets) < 5000:
        assert cut(octets, list(range(1, len(octets)))) == expected


@given(
    st.lists(st.lists(st.binary(max_size=4), min_size=1, max_size=3), max_size=40),
    st.integers(1, 50),
    st.integers(1, 50),
)
def test_encoded_messages_are_cut_again(messages: list[list[bytes]], step: int, most: int):
    octets = b"".join(encode_all(messages))
    assert cut(octets, list(range(step, len(octets), step)), most) == messages


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5])
def test_a_run_ends_where_a_header_differs(frames: int):
    alike = [b"x" * (10 + number) for number in range(frames)]
    for place in range(frames):
        for odd in (b"", b"y" * 9, b"y" * 300):
            other = [*alike[:place], odd, *alike[place + 1 :]]
            messages = (
                [alike] * 7 + [other] + [alike] * 30 + [[*alike, b"one more"]] + [alike] * 30 + [[b"end"]]
            )
            assert cut(b"".join(message(*one) for one in messages)) == messages


@pytest.mark.parametrize("flags", [5, 7, *range(8, 256)])
def test_reserved_flags_are_refused(flags: int):
    with pytest.raises(FramingError, match="flags"):
        cut(bytes((flags, 0)))


def test_messages_in_front_of_an_error_are_returned_first():
    cutter = Cutter(LIMIT, 4096)
    cutter.feed(message(b"a") + message(b"b", b"c") + b"\xff\xff")
    assert cutter.cut(1000) == ([(b"a",), (b"b", b"c")], None)
    assert cutter.pending
    for _ in range(2):
        with pytest.raises(FramingError):
            cutter.cut(1000)


@pytest.mark.parametrize(
    ("octets", "cause"),
    [
        (frame(b"x" * 11)[:2], "message-size"),
        (frame(b"x" * 6, True) + frame(b"x" * 5)[:2], "message-size"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00\x0b", "message-size"),
        (b"\x02\xff\xff\xff\xff\xff\xff\xff\xff", "message-size"),
        (b"\x06\x00\x00\x00\x00\x00\x00\x00\x09", "command-size"),
        (b"\x04\x09", "command-size"),
    ],
)
def test_sizes_are_refused_when_they_are_announced(octets: bytes, cause: str):
    cutter = Cutter(10, 8)
    cutter.feed(octets)
    with pytest.raises(TooLargeError) as error:
        everything(cutter)
    assert error.value.cause == cause


def test_a_message_of_the_largest_size_is_taken():
    cutter = Cutter(10, 8)
    cutter.feed(message(b"x" * 10) + message(b"x" * 5, b"x" * 4, b"x") + message(*[b"x"] * 10))
    assert len(everything(cutter)) == 3


def test_a_message_that_never_ends_is_refused_by_octets_and_by_frames(monkeypatch: pytest.MonkeyPatch):
    cutter = Cutter(1000, 8)
    cutter.feed(frame(b"x" * 100, True) * 11)
    with pytest.raises(TooLargeError, match="message-size"):
        everything(cutter)
    monkeypatch.setattr(limits, "MESSAGE_FRAMES", 50)
    cutter = Cutter(1000, 8)
    cutter.feed(frame(b"", True) * 51)
    with pytest.raises(TooLargeError, match="message-frames"):
        everything(cutter)
    assert cutter.held >= 50 * limits.FRAME_OCTETS


def test_an_announced_length_takes_no_memory():
    cutter = Cutter(1 << 40, 8)
    cutter.feed(b"\x02" + (1 << 39).to_bytes(8, "big") + b"x" * 5)
    assert everything(cutter) == []
    assert cutter.held <= 20
    cutter.feed(b"x" * 1000)
    assert cutter.held == 1005
    assert cutter.in_progress


def test_a_large_frame_in_small_pieces_costs_no_more_than_its_octets():
    size = 1 << 22
    octets = message(b"x" * size)
    cutter = Cutter(size, 8)
    began = time.process_time()
    for begin in range(0, len(octets), 1024):
        cutter.feed(octets[begin : begin + 1024])
        found = everything(cutter)
    assert found == [[b"x" * size]]
    assert time.process_time() - began < 2  # quadratic: 4096 copies of 2 MiB on average, 8 GiB


def test_no_octets_raise_anything_but_a_protocol_error():
    dice = random.Random(5)
    for _ in range(3000):
        cutter = Cutter(500, 50)
        octets = bytes(
            dice.choice([0, 1, 2, 3, 4, 6, dice.randrange(256)]) for _ in range(dice.randrange(100))
        )
        try:
            for begin in range(0, len(octets), 7):
                cutter.feed(octets[begin : begin + 7])
                everything(cutter, dice.randrange(1, 4))
        except ProtocolError:
            pass


class Taker:
    """Takes messages of one frame of a single octet."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def take(self, buffer: bytes, position: int, most: int, cut: int) -> tuple[int, int]:
        begin = position
        while (
            position - begin < 3 * most
            and buffer[position : position + 2] == b"\x00\x01"
            and position + 3 <= len(buffer)
        ):
            self.found.append(buffer[position + 2 : position + 3])
            position += 3
        return position, (position - begin) // 3


@given(
    st.lists(
        st.one_of(
            st.just([b"x"]),
            st.sampled_from([[b"two", b"frames"], [b""], [b"a", b"x"], [b"l" * 300], [b"g" * 9000]]),
        )
    ),
    st.randoms(use_true_random=False),
)
def test_frames_taken_by_a_taker_are_cut_by_nobody_else(messages: list[list[bytes]], dice: random.Random):
    octets = b"".join(encode_all(messages))
    taker = Taker()
    cutter = Cutter(LIMIT, 4096, taker)
    found: list[list[bytes]] = []
    taken = at = 0
    while at < len(octets):
        size = dice.choice([1, 5, 100, 10_000])
        cutter.feed(octets[at : at + size])
        at += size
        while cutter.pending:
            some, _ = cutter.cut(4)
            assert len(some) + cutter.taken <= 4
            found += map(list, some)
            taken += cutter.taken
    assert not cutter.in_progress
    assert taken == len(taker.found) == messages.count([b"x"])
    assert found == [one for one in messages if one != [b"x"]]
