"""Messages of one peer to another without sockets, beside framing the same payloads and nothing else."""

from __future__ import annotations

from itertools import count
from time import perf_counter

from processes import Figures

from dafka.overlay.peering.outputs import Send
from dafka.overlay.role import EndpointRole, Output
from dafka.overlay.routing.outputs import Deliver, DeliverMany
from dafka.overlay.wire.frames import FrameReader, frame

MESSAGES = 100_000
RUN = 1000  # messages
PAYLOAD = bytes(100)
TOPIC = b"/zeek/event/bench"
PIECE = 65_536  # octets, as a socket gives them
_MOST = 2**24


def rates() -> Figures:
    """Messages a second: published, framed; received, cut."""
    publisher, subscriber = _peers()
    published, received = _exchanged(publisher, subscriber)
    began = perf_counter()
    frames = [frame(PAYLOAD) for _ in range(MESSAGES)]
    framed = perf_counter() - began
    plain = b"".join(frames)
    began = perf_counter()
    reader = FrameReader(_MOST)
    for start in range(0, len(plain), PIECE):
        reader.feed(plain[start : start + PIECE])
        for _ in reader.messages():
            pass
    cut = perf_counter() - began
    return tuple(MESSAGES / seconds for seconds in (published, framed, received, cut))


def _exchanged(publisher: EndpointRole, subscriber: EndpointRole) -> tuple[float, float]:
    """Seconds: for publishing, for receiving, in runs as threads and sockets make them."""
    published = received = 0.0
    delivered = 0
    reader, credits = FrameReader(_MOST), FrameReader(_MOST)
    for _ in range(MESSAGES // RUN):
        began = perf_counter()
        outputs = publisher.publish_many(TOPIC, [PAYLOAD] * RUN)
        stream = b"".join([send.octets for send in outputs if isinstance(send, Send)])
        published += perf_counter() - began
        began = perf_counter()
        back: list[Output] = []
        for start in range(0, len(stream), PIECE):
            reader.feed(stream[start : start + PIECE])
            while messages := reader.take(RUN):
                back += subscriber.received_many(0.0, 0, messages)
        received += perf_counter() - began
        delivered += sum(len(one.payloads) for one in back if isinstance(one, DeliverMany))
        delivered += sum(isinstance(one, Deliver) for one in back)
        began = perf_counter()
        credits.feed(b"".join([send.octets for send in back if isinstance(send, Send)]))
        publisher.received_many(0.0, 0, credits.take(RUN))
        published += perf_counter() - began
    assert delivered == MESSAGES
    return published, received


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
