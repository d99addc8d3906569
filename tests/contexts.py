"""Contexts of ZeroMQ that end when they are told to."""

from __future__ import annotations

import zmq


def new_context() -> zmq.Context[zmq.Socket[bytes]]:
    """A context whose sockets forget at their end what they have not sent, unless their ``linger`` was set.

    pyzmq closes a socket that nobody holds any more with libzmq's default: to wait for ever until everything
    is sent. By then ``Context.destroy(linger=0)`` does not see it, and the end of ``with context`` sets
    nothing. So the end of a test stood still whose tower had gone before the last message was sent.
    """
    context = zmq.Context()
    context.set(zmq.BLOCKY, 0)
    return context
