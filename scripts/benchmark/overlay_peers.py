"""Messages of one peer to another without sockets, beside framing the same payloads and nothing else."""

from __future__ import annotations

from itertools import count
from time import perf_counter

from processes import Figures

from dafka.overlay.peering.outputs import Send
from dafka.overlay.role import EndpointRole
from dafka.overlay.wire.frames import FrameReader, frame

MESSAGES = 100_000
PAYLOAD = bytes(100)
TOPIC = b"/zeek/event/bench"
PIECE = 65_536  # octets, as a socket gives them
_MOST = 2**24


def rates() -> Figures:
    """Messages a second: published, framed; received, cut."""
    publisher, subscriber = _peers()
    began = perf_counter()
    octets = [publisher.publish(TOPIC, PAYLOAD)[0] for _ in range(MESSAGES)]
    published = perf_counter() - began
    began = perf_counter()
    frames = [frame(PAYLOAD) for _ in range(MESSAGES)]
    framed = perf_counter() - began
    stream = b"".join([send.octets for send in octets if isinstance(send, Send)])
    delivered = 0
    began = perf_counter()
    reader = FrameReader(_MOST)
    for start in range(0, len(stream), PIECE):
        reader.feed(stream[start : start + PIECE])
        for message in reader.messages():
            delivered += len(subscriber.received(0.0, 0, message))
    received = perf_counter() - began
    assert delivered == MESSAGES
    plain = b"".join(frames)
    began = perf_counter()
    reader = FrameReader(_MOST)
    for start in range(0, len(plain), PIECE):
        reader.feed(plain[start : start + PIECE])
        for _ in reader.messages():
            pass
    cut = perf_counter() - began
    return tuple(MESSAGES / seconds for seconds in (published, framed, received, cut))


def _peers() -> tuple[EndpointRole, EndpointRole]:
    numbers = count(1)
    ends = [EndpointRole(bytes([number]) * 16, 1, lambda: next(numbers)) for number in (1, 2)]
    ends[1].subscribe([b"/zeek"])
    left = [(end, output) for end in (0, 1) for output in ends[end].connected(0.0, 0, connector=end == 0)]
    reader = [FrameReader(_MOST), FrameReader(_MOST)]
    while left:
        end, output = left.pop(0)
        if isinstance(output, Send):
            reader[1 - end].feed(output.octets)
            for message in reader[1 - end].messages():
                left += [(1 - end, following) for following in ends[1 - end].received(0.0, 0, message)]
    return ends[0], ends[1]
