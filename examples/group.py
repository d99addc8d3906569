"""A consumer group: two members share four partitions and read every record once.

python examples/group.py
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from compat.kafka.admin import NewTopic
from dafka import Broker

shared = Barrier(3)  # passed when both members have their share, and there is something to read


def work(servers: str) -> tuple[list[int], list[bytes]]:
    group = {"group_id": "workers", "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer("jobs", bootstrap_servers=servers, **group)
    while len(consumer.assignment()) != 2:
        consumer.poll(timeout_ms=100)
    partitions = sorted(partition for _, partition in consumer.assignment())
    shared.wait()
    jobs = [next(consumer).value for _ in range(500)]
    consumer.close()  # commits what it has read
    return partitions, jobs


with Broker() as broker, ThreadPoolExecutor() as threads:
    servers = broker.bootstrap_servers
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic("jobs", num_partitions=4, replication_factor=1)])
    members = [threads.submit(work, servers) for _ in range(2)]
    shared.wait()
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(1000):
            producer.send("jobs", b"%d" % number, partition=number % 4)
    for partitions, jobs in sorted(member.result() for member in members):
        print("partitions", partitions, "had", len(set(jobs)), "jobs")
