"""The lines about ZeroMQ's sockets of our own."""

from __future__ import annotations

from functools import partial

import zmq
import zmtp_router
from line import Line, measurement, pick, rate

MESSAGES = 500_000

_plain = measurement(
    partial(zmtp_router.take_plain, count=MESSAGES),
    partial(zmtp_router.send, count=MESSAGES, kind=zmq.DEALER),
)


def _taken(kind: int) -> Line:
    taken = measurement(
        partial(zmtp_router.take, count=MESSAGES), partial(zmtp_router.send, count=MESSAGES, kind=kind)
    )
    name = "DEALER" if kind == zmq.DEALER else "PUSH"
    return Line(
        f"Router: 100 octets from a {name}",
        rate,
        pick(taken),
        pick(_plain),
        "pyzmq's ROUTER",
        least_ratio=1.5,
    )


ZMTP_LINES = [
    _taken(zmq.DEALER),
    _taken(zmq.PUSH),
    Line(
        "Router: 100 octets to a DEALER",
        rate,
        pick(
            measurement(
                partial(zmtp_router.give, count=MESSAGES),
                partial(zmtp_router.receive, count=MESSAGES, kind=zmq.DEALER),
            )
        ),
        pick(
            measurement(
                partial(zmtp_router.give_plain, count=MESSAGES),
                partial(zmtp_router.receive, count=MESSAGES, kind=zmq.DEALER),
            )
        ),
        "pyzmq's ROUTER",
        least_ratio=1,
    ),
]
