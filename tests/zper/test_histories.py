"""Random histories of a topic, beside a list of its messages: FETCH and OFFSET agree with the list."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest
import zmq
from timing import until
from zper.clients import EARLIEST, INVALID_OFFSET, LATEST, OK, Clients, fetch, identity, offset, raw

from compat.kafka import KafkaProducer
from dafka.testing import TestBroker
from dafka.zper import ZperOptions

SEGMENT = 3000


class History:
    """A broker that is started again every now and then, and what should be in its topic."""

    def __init__(self, folder, seed):
        self.choice = random.Random(seed)
        self.broker = TestBroker(folder, zper=ZperOptions(segment_size=SEGMENT, flush_interval=2))
        self.messages = []
        self.dropped = 0

    def run(self, steps):
        self.broker.start()
        try:
            with Clients() as clients:
                self.clients = clients
                self.write()
                for _ in range(steps):
                    self.choice.choice(
                        [self.write, self.write, self.produce, self.read, self.read, self.other]
                    )()
                    self.read()
        finally:
            self.broker.stop()

    @property
    def starts(self):
        return [0, *accumulate(len(raw(*message)) for message in self.messages)]

    def message(self):
        frames = self.choice.choice([1, 1, 1, 2, 3, 9])
        octets = [
            self.choice.randbytes(self.choice.choice([1, 5, 5, 5, 100, 254, 255, 4000]))
            for _ in range(frames)
        ]
        return [frame or b"x" for frame in octets]

    # -- what changes it ------------------------------------------------------------------------

    def write(self):
        kind, mode = self.choice.choice([(zmq.DEALER, 2), (zmq.REQ, 2), (zmq.DEALER, 1), (zmq.PUSH, 0)])
        sock = self.clients.connect(kind, self.broker.zper.writer_address, identity("t", mode))
        some = [self.message() for _ in range(self.choice.choice([1, 3, 40]))]
        for message in some:
            sock.send_multipart(message)
            if mode == 2:
                assert sock.recv_multipart() == message[-1:]
        if mode == 1:
            while sock.recv() != some[-1][-1]:
                pass
        sock.close()
        self.messages += some
        until(lambda: self.latest() == self.starts[-1])

    def latest(self):
        return offset(self.reader(), LATEST)[1][1]

    def produce(self):
        transactional = {"transactional_id": "t"} if self.choice.random() < 0.5 else {}
        with KafkaProducer(bootstrap_servers=self.broker.bootstrap_servers, **transactional) as producer:
            if transactional:
                producer.init_transactions()
                producer.begin_transaction()
            commit = self.choice.random() < 0.6 or not transactional
            some = [[b"key", b"%d" % number] if number % 3 else [b"%d" % number] for number in range(20)]
            for message in some:
                key = message[0] if len(message) == 2 else None
                producer.send("t", key=key, value=message[-1])
            producer.flush()
            if transactional:
                (producer.commit_transaction if commit else producer.abort_transaction)()
        if commit:
            self.messages += some

    def other(self):
        if self.choice.random() < 0.5:
            self.broker.stop()
            self.broker.start()
            return
        (end,) = self.broker.end_offsets("t").values()
        before = self.choice.randrange(end + 1) if self.choice.random() < 0.2 else end // 10
        self.broker._within(lambda core: core.delete_records({("t", 0): before}))
        (first,) = offset(self.reader(), EARLIEST)[1]
        assert first in self.starts
        assert first >= self.starts[self.dropped]
        self.dropped = self.starts.index(first)

    # -- what is seen of it ---------------------------------------------------------------------

    def reader(self):
        return self.clients.dealer(self.broker.zper.reader_address, "t")

    def read(self):
        reader = self.reader()
        starts = self.starts
        first, end = starts[self.dropped], starts[-1]
        assert offset(reader, EARLIEST) == (100, [first])
        assert offset(reader, LATEST)[1][-1] == end
        octets = b"".join(raw(*message) for message in self.messages)
        segments = {start // SEGMENT: start for start in reversed(starts[self.dropped : -1])}
        assert offset(reader, 2**62)[1] == [*sorted(segments.values()), end][-1001:] or first == end
        for _ in range(4):
            position = self.choice.choice([self.choice.randint(-5, end + 5), self.choice.choice(starts)])
            size = self.choice.choice([0, 1, 50, 10_000, 2**40])
            answer = fetch(reader, position, size)
            if first <= position <= end:
                stop = min([start for start in segments.values() if start > position], default=end)
                assert answer[0] == OK
                assert answer[1] == octets[position : min(position + size, stop)]
            else:
                assert answer == [INVALID_OFFSET]
        place = self.choice.randrange(self.dropped, len(starts))
        assert fetch(reader, starts[place], -1) == [OK]
        for message in self.messages[place:][:30]:
            assert reader.recv_multipart() == message
        reader.close(linger=0)


@pytest.mark.parametrize("seed", range(3))
def test_written_messages_are_read_whatever_happens_in_between(tmp_path, seed):
    History(tmp_path / "data", seed).run(16)
