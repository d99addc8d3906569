"""kill -9 in the midst of writes: answered messages are there, and positions name the same messages."""

from __future__ import annotations

import random
import struct
import time

import zmq
from zper.clients import EARLIEST, LATEST, OK, fetch, identity, offset
from zper.servers import Server

from dafka.protocol.raw import decode_messages


class Writing:
    """A client that writes numbered messages, and knows what was answered."""

    def __init__(self, clients, address, mode):
        self.mode = mode
        self.sock = clients.connect(zmq.DEALER, address, identity("events", mode), SNDHWM=200)
        self.sent = 0
        self.answered = []
        self.name = b"mode %d" % mode

    def step(self):
        while self.sock.poll(0):
            self.answered.append(int(self.sock.recv()))
        try:
            self.sock.send_multipart([self.name, b"%d" % self.sent], zmq.DONTWAIT)
            self.sent += 1
        except zmq.Again:
            time.sleep(0.001)


def everything(reader):
    """All messages with their positions."""
    (position,) = offset(reader, EARLIEST)[1]
    found = []
    while True:
        status, octets = fetch(reader, position, 2**31)
        assert status == OK
        if not octets:
            return found
        messages, whole = decode_messages(octets)
        assert whole == len(octets)
        for message in messages:
            found.append((position, message))
            position += sum(len(frame) + 2 for frame in message)


def test_answered_messages_are_there_and_positions_given_out_name_the_same_messages(tmp_path, clients):
    choice = random.Random(7)
    with Server(tmp_path / "data", flush_interval=3, segment_size=20_000) as server:
        writing = [Writing(clients, server.addresses["writer"], mode) for mode in (0, 1, 2)]
        acks = clients.context.socket(zmq.SUB)
        acks.setsockopt(zmq.RCVHWM, 0)
        acks.subscribe(b"events")
        acks.connect(server.addresses["ack"])
        told = {}  # positions that a client was told, with the first frame of the message
        ends = []  # (end, number of messages before it)
        for _ in range(3):
            until = time.monotonic() + 0.2 + 0.2 * choice.random()
            before = [len(one.answered) for one in writing]

            def in_the_midst(before=before):
                answered = [len(one.answered) for one in writing]
                return answered[1] > before[1] and answered[2] > before[2] and acks.poll(0)

            deadline = time.monotonic() + 100
            while time.monotonic() < until or not in_the_midst():
                assert time.monotonic() < deadline
                for one in writing:
                    one.step()
            server.kill()
            for one in writing:
                while one.sock.poll(0):
                    one.answered.append(int(one.sock.recv()))
            server.start()
            reader = clients.dealer(server.addresses["reader"], "events")
            while acks.poll(50):  # before it is read: clients that are back are writing again
                _, first, place = acks.recv_multipart()
                (position,) = struct.unpack(">q", place)
                assert told.setdefault(position, first) == first
            end = offset(reader, LATEST)[1][1]
            found = everything(reader)
            at = dict(found)
            for position, first in told.items():
                assert at[position][0] == first
            ends.append((end, sum(position < end for position, _ in found)))
            for end, count in ends:
                assert [position for position, _ in found[count : count + 1]] in ([], [end])
            for one in writing:
                stored = [int(number) for _, (name, number) in found if name == one.name]
                assert stored == sorted(set(stored))  # none twice, none out of order
                assert set(one.answered) <= set(stored)
                if one.mode == 1:  # an answer covers all messages before it that reached the server
                    assert one.answered == sorted(one.answered)
            reader.close()
        assert told
        assert all(one.answered for one in writing[1:])
        assert all(one.sent > 100 for one in writing)
