"""What tests of the data source share: filling topics, frames over them, and waiting."""

from __future__ import annotations

import time

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

SECONDS = 600


def create(broker, topic, partitions=3):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
    admin.close()


def produce(broker, topic, values, **keywords):
    """Send values; keywords as for send, each a list or one for all."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number, value in enumerate(values):
            one = {name: some[number] if isinstance(some, list) else some for name, some in keywords.items()}
            producer.send(topic, value, **one)
        producer.flush(timeout=SECONDS)


def records(broker, topic):
    """All records of a topic, as kafka-python's consumer reads them, in the order of their partitions."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, enable_auto_commit=False)
    places = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]
    ends = consumer.end_offsets(places)
    found = []
    for place in places:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        while consumer.position(place) < ends[place]:
            for some in consumer.poll(timeout_ms=1000).values():
                found += some
    consumer.close()
    return found


def values(broker, topic):
    return [record.value for record in records(broker, topic)]


def frame(spark, broker, **options):
    """spark.read of a broker."""
    return loader(spark.read, broker, options).load()


def stream(spark, broker, **options):
    """spark.readStream of a broker."""
    return loader(spark.readStream, broker, options).load()


def loader(reader, broker, options):
    reader = reader.format("dafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader


def write(frame, broker, mode="append", **options):
    """frame.write to a broker."""
    loader(frame.write, broker, options).mode(mode).save()


def write_stream(frame, broker, checkpoint, **options):
    """frame.writeStream to a broker, not started yet."""
    return loader(frame.writeStream, broker, options).option("checkpointLocation", str(checkpoint))


def wait_until(condition, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.05)


def first_line(error):
    return str(error).splitlines()[0]
