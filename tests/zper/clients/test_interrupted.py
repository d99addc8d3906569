"""Ctrl-C in a call of a reader or a writer: the program may go on, as in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest
from timing import SECONDS
from zper.model_server import ModelServer

from dafka.zper import Reader, Writer
from dafka.zper.clients import asking, connection
from dafka.zper.clients import reader as reader_module
from dafka.zper.clients import writer as writer_module
from dafka.zper.clients.errors import NoResponseError
from tests.compat.interrupting import InterruptedCall

MODULES = (reader_module, connection, asking)
HANDING_OUT = (Reader.receive.__code__, Reader.stream.__code__, Reader.__iter__.__code__)
Seen = list[tuple[int, bytes]]


def iterates(reader: Reader, seen: Seen, total: int) -> None:
    for message in reader:
        seen.append((message.position, message.frames[0]))


def streams(reader: Reader, seen: Seen, total: int) -> None:
    while len(seen) < total:
        for message in reader.stream():
            seen.append((message.position, message.frames[0]))
            if len(seen) == total:
                break


@pytest.mark.parametrize("read", [iterates, streams])
def test_whichever_call_ctrl_c_ends_each_message_is_given_out_once_at_its_position(
    server: ModelServer, read: Callable[[Reader, Seen, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "REOPEN", 0.0)
    for number in count(1):
        topic, sent, seen = f"t{number}", [b"%d" % value for value in range(6)], Seen()
        for value in sent[:2]:
            server.append(topic, value)
        with Reader(topic, server.reader) as reader:
            read(reader, seen, 2)
            if read is streams:
                assert reader.receive(0.0) is None, "what comes from now on is streamed"
            for value in sent[2:4]:
                server.append(topic, value)
            interruption = InterruptedCall(number, *MODULES, handing_out=HANDING_OUT)
            with suppress(KeyboardInterrupt), interruption:
                read(reader, seen, 4)
            for value in sent[4:]:
                server.append(topic, value)
            read(reader, seen, 6)
            assert seen == [(3 * place, value) for place, value in enumerate(sent)]
            assert reader.position == reader.latest()
        if not interruption.interrupted:
            break
    assert number > 10


def sends(writer: Writer) -> None:
    for value in range(3):
        writer.send(b"%d" % value)


def flushes(writer: Writer) -> None:
    writer.flush(SECONDS)


@pytest.mark.parametrize("call", [sends, flushes])
def test_a_writer_is_answered_for_all_that_it_took_whichever_call_ctrl_c_ends(
    server: ModelServer, call: Callable[[Writer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server may have got is sent again, as after the end of a connection."""
    monkeypatch.setattr(connection, "REOPEN", 0.0)
    for number in count(1):
        topic = f"t{number}"
        with Writer(topic, server.writer) as writer:
            writer.send(b"first")
            interruption = InterruptedCall(number, writer_module, connection)
            with suppress(KeyboardInterrupt), interruption:
                call(writer)
            server.silent = True
            writer.send(b"later")
            with pytest.raises(NoResponseError):  # that to an earlier one does not count
                writer.flush(0.05)
            server.silent = False
            server.stop()
            server.start()
            writer.flush(SECONDS)
            assert (writer.unanswered, writer._octets) == (0, 0)
        with Reader(topic, server.reader) as reader:
            stored = [message.frames[0] for message in reader]
        assert {b"first", b"later"} <= set(stored)
        if not interruption.interrupted:
            break
    assert number > 10
