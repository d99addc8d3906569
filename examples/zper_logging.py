"""Python's own log records, by PUSH sockets of several processes, in a topic that a Kafka consumer reads.

    python examples/zper_logging.py

The processes that log have a ZeroMQ socket and no other client: its identity names the topic.
"""

import logging
import multiprocessing

import zmq
from zmq.log.handlers import PUBHandler

from compat.kafka import KafkaConsumer
from dafka import Broker
from dafka.zper import ZperOptions, identity


def work(address: str, number: int) -> None:
    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.identity = identity.build("logs")
    socket.connect(address)
    handler = PUBHandler(socket)  # sends each record as two frames: its level, and its text
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for job in range(3):
        logging.info("worker %d: job %d done", number, job)


if __name__ == "__main__":
    with Broker(zper=ZperOptions()) as broker:
        start = multiprocessing.get_context("spawn").Process
        workers = [start(target=work, args=(broker.zper.writer_address, number)) for number in range(4)]
        for worker in workers:
            worker.start()
        logs = KafkaConsumer("logs", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
        for _, record in zip(range(12), logs, strict=False):
            print(record.offset, record.key, record.value)
        for worker in workers:
            worker.join()
