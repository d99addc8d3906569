"""asyncio: aiokafka's clients, and a broker in the same process that listens for them.

python examples/in_asyncio.py       # needs pip install aiokafka
"""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from dafka import Broker


async def main() -> None:
    with Broker(listen="127.0.0.1:0") as broker:  # in a thread of its own
        reading = asyncio.create_task(read(broker.bootstrap_servers))
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(10):
                await producer.send_and_wait("ticks", b"tick %d" % number)
        print("read:", *await asyncio.wait_for(reading, 60), sep="\n")


async def read(servers: str) -> list[str]:
    consumer = AIOKafkaConsumer("ticks", bootstrap_servers=servers, auto_offset_reset="earliest")
    async with consumer:
        return [(await consumer.getone()).value.decode() for _ in range(10)]


asyncio.run(main())
