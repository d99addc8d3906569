"""A query of Apache Spark over a topic of a broker in this process: mean delay by airline.

python examples/spark_query.py      # needs pip install 'dafka[spark]' and Java 17 or newer
"""

from pyspark.sql import functions as f

from compat.kafka import KafkaProducer
from dafka import Broker
from dafka.spark import session

DELAYS = [(b"UA", 12), (b"AA", 4), (b"UA", 30), (b"B6", 0), (b"AA", 8), (b"UA", 3)]

with Broker(listen="127.0.0.1:0") as broker:  # it listens, because Spark's tasks are processes of their own
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for airline, delay in DELAYS:
            producer.send("flights", key=airline, value=b'{"delay": %d}' % delay)

    spark = session("delays")  # small, on this machine; it knows the format "dafka"
    records = (
        spark.read.format("dafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", "flights")
        .load()
    )
    flights = records.select(
        f.col("key").cast("string").alias("airline"),
        f.from_json(f.col("value").cast("string"), "delay int").delay.alias("delay"),
    )
    for row in flights.groupBy("airline").mean("delay").orderBy("airline").collect():
        print(*row)
    spark.stop()
