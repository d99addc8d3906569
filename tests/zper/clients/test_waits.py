"""Times to wait of ZPER's clients: NaN is refused, infinity is for ever."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from zper.model_server import ModelServer

from dafka.zper import Acks, Mode, Reader, Relay, Writer
from dafka.zper.clients.cluster import Cluster

WAITS: dict[str, Callable[[ModelServer], Any]] = {
    "Writer": lambda server: Writer("flights", server.writer, timeout=nan),
    "Writer.send": lambda server: Writer("flights", server.writer).send(b"x", timeout=nan),
    "Writer.flush": lambda server: Writer("flights", server.writer).flush(nan),
    "Writer.response": lambda server: Writer("flights", server.writer, mode=Mode.AT_FLUSH).response(nan),
    "Writer.close": lambda server: Writer("flights", server.writer).close(nan),
    "Writer.close, mode 0": lambda server: Writer("flights", server.writer, mode=Mode.NO_RESPONSE).close(nan),
    "Reader": lambda server: Reader("flights", server.reader, timeout=nan),
    "Reader.receive": lambda server: Reader("flights", server.reader).receive(nan),
    "Acks": lambda server: Acks(idle=nan),
    "Acks.receive": lambda server: Acks().receive(nan),
    "Relay": lambda server: Relay("flights", idle=nan),
    "Relay.receive": lambda server: Relay("flights").receive(nan),
    "Cluster": lambda server: Cluster(timeout=nan),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_client_refuses_to_wait_nan_seconds(server: ModelServer, wait: Callable[[ModelServer], Any]):
    with pytest.raises(ValueError, match=r"is a number of seconds.*, not nan"):
        wait(server)


def test_infinity_is_for_ever(server: ModelServer):
    for mode in Mode:
        with Writer("flights", server.writer, mode=mode, timeout=inf) as writer:
            writer.send(b"x", timeout=inf)
            writer.close(inf)
    with Reader("flights", server.reader, timeout=inf) as reader:
        message = reader.receive(inf)
        assert message is not None and message.frames == [b"x"]
