"""ZPER for clients that have a key: those of ZeroMQ's, ours, and the terminal's."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq
from cli.tools import run
from contexts import new_context

from dafka import Broker
from dafka.security import KeyFolder
from dafka.security.keys import new_keys, remove_node
from dafka.zper import Reader, Writer, ZperOptions, identity


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "keys"
    for node in ("broker", "client", "out"):
        new_keys(made, node, store=node == "broker")
    remove_node(made, "out")
    return made


def test_clients_on_the_list_write_and_read(folder):
    keys = KeyFolder(str(folder), "client")
    with (
        Broker(zper=ZperOptions(), keys=KeyFolder(str(folder), "broker")) as broker,
        keys.context() as context,
    ):
        with Writer("topic", broker.zper.writer_address, context=context) as writer:
            for number in range(100):
                writer.send(b"%d" % number)
        with Reader("topic", broker.zper.reader_address, context=context) as reader:
            assert len(list(reader)) == 100
        options = ("--keys", str(folder), "--node", "client", "--address")
        counted = run("zper", "count", "topic", *options, broker.zper.reader_address)
        assert counted.stdout.splitlines()[-1] == "Total : 100"


@pytest.mark.parametrize("node", ["out", None], ids=["not on the list", "without keys"])
def test_others_are_not_let_in(folder, node):
    with (
        Broker(zper=ZperOptions(), keys=KeyFolder(str(folder), "broker")) as broker,
        new_context() if node is None else KeyFolder(str(folder), node).context() as context,
        context.socket(zmq.DEALER) as socket,
    ):
        socket.linger = 0
        socket.setsockopt(zmq.IDENTITY, identity.build("topic"))
        socket.connect(broker.zper.writer_address)
        socket.send_multipart([b"a message"])
        assert not socket.poll(500)
        assert broker.metrics()["zper_messages_in"] == 0
