"""A topic as a queue: workers of a share group take the jobs of one partition, and one job fails at first.

python examples/queue_of_jobs.py
"""

from concurrent.futures import ThreadPoolExecutor

from compat.kafka import KafkaAdminClient, KafkaProducer
from compat.kafka.admin import ConfigResource, ConfigResourceType
from compat.kafka.share import AcknowledgeType, ShareConsumer
from dafka import Broker

done: dict[int, int] = {}  # job -> how often it was delivered


def work(servers: str) -> None:
    modes = {"share_acknowledgement_mode": "explicit", "share_acquire_mode": "record_limit"}
    with ShareConsumer("jobs", group_id="workers", bootstrap_servers=servers, **modes) as worker:
        while len(done) < 30:
            for (job,) in worker.poll(timeout_ms=100, max_records=1).values():
                if job.value == b"7" and job.delivery_count == 1:
                    worker.acknowledge(job, AcknowledgeType.RELEASE)  # somebody else may try
                else:
                    worker.acknowledge(job)
                    done[int(job.value)] = job.delivery_count


with Broker() as broker, ThreadPoolExecutor() as threads:
    servers = broker.bootstrap_servers
    first = ConfigResource(ConfigResourceType.GROUP, "workers", {"share.auto.offset.reset": "earliest"})
    KafkaAdminClient(bootstrap_servers=servers).alter_configs([first])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(30):
            producer.send("jobs", b"%d" % number)
    for worker in [threads.submit(work, servers) for _ in range(3)]:
        worker.result()
again = [job for job, count in done.items() if count == 2]
print(len(done), "jobs done; those that took two deliveries:", again)
