"""The code blocks of the documents that need a session of Spark, in the one that all tests share."""

from __future__ import annotations

import pytest
from documents.markdown import blocks, documents
from documents.running import BROKER

from compat.kafka import KafkaProducer

BLOCKS = [
    block
    for document in documents()
    for block in blocks(document)
    if block.told("run with Spark") is not None
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_block_makes_a_stream_of_the_flights(spark, broker, tmp_path, block):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("flights", b"UA 1545")
    names = {"spark": spark}
    exec(BROKER.sub(broker.bootstrap_servers, block.text), names)
    query = (
        names["flights"]
        .writeStream.format("memory")
        .queryName("flights")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(100)
    assert [bytes(row.value) for row in spark.table("flights").collect()] == [b"UA 1545"]
