"""Dafka's own nodes in three processes, without a broker: a store, a producer and a consumer.

python examples/native.py      # the consumer starts when the producer is gone, and reads from the store
"""

import multiprocessing
from itertools import islice
from tempfile import TemporaryDirectory

from dafka import Consumer, Producer, Store, Tower


def store(tower, done):
    with TemporaryDirectory() as folder, Store(folder, tower=tower):
        done.wait()


def produce(tower):
    with Producer("weather", tower=tower) as producer:  # closes when the store has acknowledged everything
        for hour in range(24):
            producer.send(b"%02d:00 %d degrees" % (hour, 10 + hour % 12))


def consume(tower):
    with Consumer(["weather"], tower=tower, offset_reset="earliest") as consumer:
        for record in islice(consumer, 24):
            print(record.topic, record.offset, record.value.decode())


if __name__ == "__main__":
    new = multiprocessing.get_context("spawn")
    done = new.Event()
    with Tower() as tower:  # it introduces the nodes to each other
        new.Process(target=store, args=(tower.addresses, done)).start()
        for part in (produce, consume):
            process = new.Process(target=part, args=(tower.addresses,))
            process.start()
            process.join()
        done.set()
