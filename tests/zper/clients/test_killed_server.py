"""The small clients and a server that is killed again and again."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from zper.servers import Server

from dafka.testing.waiting import wait_until
from dafka.zper import Reader, Writer
from dafka.zper.frames import Message

TIMES = 3


def test_every_message_is_stored_and_read_at_one_position_whenever_the_server_dies(tmp_path: Path):
    streamed: list[Message] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def follow(address: str) -> None:
        try:
            with Reader("events", address, position=0, timeout=200) as reader:
                while not done.is_set():
                    message = reader.receive(0.05)
                    if message is not None:
                        streamed.append(message)
        except BaseException as error:
            failed.append(error)

    with Server(tmp_path / "data", flush_interval=3, segment_size=20_000) as server:
        follower = threading.Thread(target=follow, args=(server.addresses["reader"],))
        follower.start()
        sent = 0
        try:
            with Writer("events", server.addresses["writer"], queue=500, timeout=200) as writer:
                for _ in range(TIMES):
                    until = time.monotonic() + 0.3
                    while time.monotonic() < until:
                        writer.send(b"id", b"%d" % sent)
                        sent += 1
                    server.kill()
                    server.start()
                writer.flush()
            with Reader("events", server.addresses["reader"], timeout=200) as reader:
                stored = list(reader)
            wait_until(lambda: failed or (streamed and streamed[-1].end >= stored[-1].end), 100.0)
        finally:
            done.set()
            follower.join()
    assert not failed
    assert streamed == stored  # each once, in order, at the position where it stays
    numbers = [int(message.frames[1]) for message in stored]
    firsts = list(dict.fromkeys(numbers))
    # Some can be stored again, or behind later ones that ZeroMQ sends before the writer knows of the end.
    assert sorted(firsts) == list(range(sent))
    assert len(numbers) - sent <= TIMES * 500
