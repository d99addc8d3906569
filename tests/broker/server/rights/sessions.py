"""Clients that stay connected while rights are given and taken: each writes and reads one topic.

``write`` and ``read`` say ``"yes"`` or ``"refused"``; anything else fails.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from clients.adapters import java
from clients.records import Record
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaException
from confluent_kafka import Producer as ConfluentProducer
from kafka.errors import TopicAuthorizationFailedError

import compat.kafka

SECONDS = 60.0
YES, REFUSED = "yes", "refused"
PASSWORD = "secret"
USER = "alice"


class Session(ABC):
    """A producer and a consumer of a topic."""

    waits_to_write = False
    """Whether it waits for a topic that it may not even see, and says nothing."""

    @abstractmethod
    def __init__(self, address: str, topic: str) -> None:
        """They need not be able to do anything yet."""

    @abstractmethod
    def write(self) -> str:
        """Write a record and wait for the answer."""

    @abstractmethod
    def read(self) -> str:
        """Read until a record comes, or the topic is refused."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""


def login(address: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
        "metadata_max_age_ms": 500,
    }


class KafkaPython(Session):
    library: Any = kafka
    _consumer: Any = None

    def __init__(self, address: str, topic: str) -> None:
        self._topic = topic
        self._login = login(address)
        self._producer = self.library.KafkaProducer(**self._login, enable_idempotence=False)

    def _late_consumer(self) -> Any:
        """One that is made when it may read, and learns of a refusal from a Fetch.

        Where metadata says so first, a consumer of kafka-python that is in no group drops the topic's leader,
        and then asks for metadata again and again, as fast as it can, without telling anybody.
        """
        rarely = {"metadata_max_age_ms": 300_000}
        return kafka.KafkaConsumer(self._topic, **self._login | rarely, auto_offset_reset="earliest")

    def write(self) -> str:
        try:
            self._producer.send(self._topic, b"v", partition=0).get(SECONDS)
        except TopicAuthorizationFailedError:
            return REFUSED
        return YES

    def read(self) -> str:
        if self._consumer is None:
            self._consumer = self._late_consumer()
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            try:
                if self._consumer.poll(500):
                    return YES
            except TopicAuthorizationFailedError:
                return REFUSED
        return "nothing"

    def close(self) -> None:
        self._producer.close(0)
        if self._consumer is not None:
            self._consumer.close()


class Facade(KafkaPython):
    """Over TCP: the broker is in another process."""

    library = compat.kafka

    def __init__(self, address: str, topic: str) -> None:
        super().__init__(address, topic)
        self._consumer = compat.kafka.KafkaConsumer(topic, **self._login, auto_offset_reset="earliest")


class Librdkafka(Session):
    def __init__(self, address: str, topic: str) -> None:
        self._topic = topic
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "topic.metadata.refresh.interval.ms": 500,
        }
        self._producer = ConfluentProducer(settings)
        self._consumer = ConfluentConsumer(
            {**settings, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self._consumer.subscribe([topic])

    def write(self) -> str:
        errors: list[Any] = []
        try:
            self._producer.produce(self._topic, b"v", on_delivery=lambda error, _: errors.append(error))
        except KafkaException as error:  # its last news of the topic
            self._producer.poll(0.1)
            return _refused(error.args[0])
        assert self._producer.flush(SECONDS) == 0
        return YES if errors[0] is None else _refused(errors[0])

    def read(self) -> str:
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            message = self._consumer.poll(0.5)
            if message is not None:
                return YES if message.error() is None else _refused(message.error())
        return "nothing"

    def close(self) -> None:
        self._consumer.close()


def _refused(error: Any) -> str:
    return REFUSED if "authorization failed" in str(error) else str(error)


class Aiokafka(Session):
    def __init__(self, address: str, topic: str) -> None:
        self._topic = topic
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._login = login(address)
        self._clients: list[Any] = []

    def _run(self, coroutine: Any) -> str:
        return str(asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(2 * SECONDS))

    def write(self) -> str:
        return self._run(self._write())

    def read(self) -> str:
        return self._run(self._read())

    async def _start(self) -> None:
        if not self._clients:
            producer = AIOKafkaProducer(**self._login)
            consumer = AIOKafkaConsumer(**self._login, auto_offset_reset="earliest")
            for one in (producer, consumer):
                self._clients.append(one)
                await one.start()
            consumer.subscribe([self._topic])

    async def _write(self) -> str:
        await self._start()
        try:
            await self._clients[0].send_and_wait(self._topic, b"v", partition=0)
        except Exception as error:
            return REFUSED if "TopicAuthorizationFailed" in type(error).__name__ else repr(error)
        return YES

    async def _read(self) -> str:
        await self._start()
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            try:
                if await self._clients[1].getmany(timeout_ms=500):
                    return YES
            except Exception as error:
                return REFUSED if "TopicAuthorizationFailed" in type(error).__name__ else repr(error)
            # News from its metadata, before a fetch has them, it keeps to itself.
            if self._topic in self._clients[1]._client.cluster.unauthorized_topics:
                return REFUSED
        return "nothing"

    async def _stop(self) -> None:
        for one in self._clients:
            with suppress(Exception):
                await one.stop()

    def close(self) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()


class Program:
    """A console tool, and what it says."""

    def __init__(self, *command: str) -> None:
        self._said: queue.Queue[str] = queue.Queue()
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line.strip())
        self._said.put("ended")

    def outcome(self, wanted: str) -> str:
        """Waits for a line with ``wanted`` in it, or one that says that it may not."""
        ends = time.monotonic() + SECONDS
        said = []
        while time.monotonic() < ends:
            with suppress(queue.Empty):
                line = self._said.get(timeout=0.2)
                said.append(line)
                if "authorization failed" in line:
                    return REFUSED
                if wanted in line:
                    return YES
        return repr(said)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)


class Kcat(Session):
    """It is run for each record that it writes, and ends when it is refused."""

    waits_to_write = True

    def __init__(self, address: str, topic: str) -> None:
        sasl = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }
        settings = [f"-X{key}={value}" for key, value in sasl.items()]
        self._command = [shutil.which("kcat") or "kcat", "-b", address, "-t", topic, "-p", "0", *settings]
        self._consumer: Program | None = None

    def write(self) -> str:
        produce = [*self._command, "-P", "-Xmessage.timeout.ms=20000"]
        done = subprocess.run(produce, input="v", capture_output=True, text=True, timeout=SECONDS)
        if "authorization failed" in done.stderr:
            return REFUSED
        return done.stderr if done.returncode else YES

    def read(self) -> str:
        consumer = self._consumer = self._consumer or Program(*self._command, "-C", "-u", "-o", "beginning")
        outcome = consumer.outcome("v")
        if outcome == REFUSED:
            self.close()
        return outcome

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class Java(Session):
    """Kafka's own client."""

    def __init__(self, address: str, topic: str) -> None:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{module} required username="{USER}" password="{PASSWORD}";',
            "metadata.max.age.ms": "500",
            "enable.idempotence": "false",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
        self._clients = java.Connected(topic, settings)

    def write(self) -> str:
        return self._outcome(lambda: self._clients.write(Record(b"v")) or 1)

    def read(self) -> str:
        ends = time.monotonic() + SECONDS
        outcome = "nothing"
        while outcome == "nothing" and time.monotonic() < ends:
            outcome = self._outcome(self._clients.read)
        return outcome

    def _outcome(self, action: Callable[[], int]) -> str:
        try:
            return YES if action() else "nothing"
        except RuntimeError as error:
            return REFUSED if "AuthorizationException" in str(error) else str(error)

    def close(self) -> None:
        self._clients.close()


SESSIONS = {
    "kafka-python": KafkaPython,
    "the facade over TCP": Facade,
    "confluent-kafka": Librdkafka,
    "aiokafka": Aiokafka,
    "kcat": Kcat,
    "java": Java,
}
