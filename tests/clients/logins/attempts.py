"""One attempt of each client to come in: it writes a record and reads it, or what it is told instead."""

from __future__ import annotations

import asyncio
import re
import ssl
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.abc import AbstractTokenProvider as AioTokens
from aiokafka.errors import KafkaError as AioError
from broker.server.secured import TOPIC, store
from clients.adapters.java import Java
from clients.adapters.kcat import Kcat
from clients.logins.cases import CERTIFICATE, CLOSED, IN, LOGIN, NOT_ALLOWED, SERVER, Login
from clients.records import Record
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as Place
from kafka import TopicPartition
from kafka.net.sasl.oauth import AbstractTokenProvider
from security.certificates import Signed

import compat.kafka

Attempt = Callable[[str, Login, bytes, float], str]
"""Address, login, the record's value, and seconds until it is given up; what became of it."""

SECONDS = 100.0
SAID = {
    NOT_ALLOWED: r"topic.?authorization.?(failed|exception)|not authorized to access the requested topic",
    LOGIN: r"sasl.?authentication.?(failed|error|exception)",
    CERTIFICATE: r"alert[:_ ]+(bad.|\w+ )?(certificate|unknown.ca)",
    SERVER: r"certificate.verify.failed|certificate is not accepted|CertificateException|PKIX",
}


def meaning(text: object) -> str:
    """What a client says, in one of the words for it."""
    return next((said for said, words in SAID.items() if re.search(words, str(text), re.IGNORECASE)), CLOSED)


class Token(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


class AioToken(AioTokens):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def python_options(address: str, login: Login) -> dict[str, Any]:
    """kafka-python's names."""
    options: dict[str, Any] = {"bootstrap_servers": address, "security_protocol": login.protocol}
    if login.has_tls:
        paths = {"cafile": login.cafile, "certfile": login.certfile, "keyfile": login.keyfile}
        options.update({f"ssl_{name}": path for name, path in paths.items() if path})
    if login.mechanism:
        options["sasl_mechanism"] = login.mechanism
    if login.token:
        options["sasl_oauth_token_provider"] = Token(login.token)
    elif login.user:
        options["sasl_plain_username"] = login.user
        options["sasl_plain_password"] = login.password
    return options


def like_kafka_python(library: ModuleType) -> Attempt:
    def attempt(address: str, login: Login, value: bytes, seconds: float) -> str:
        options = {**python_options(address, login), "bootstrap_timeout_ms": int(1000 * seconds)}
        try:
            with closing(library.KafkaProducer(**options, enable_idempotence=False)) as producer:
                offset = producer.send(TOPIC, value, partition=0).get(seconds).offset
            place = TopicPartition(TOPIC, 0)
            with closing(library.KafkaConsumer(**options, enable_auto_commit=False)) as consumer:
                consumer.assign([place])
                consumer.seek(place, offset)
                found = consumer.poll(1000 * seconds).get(place, [])
        except kafka.errors.KafkaError as error:
            return meaning(error)
        return IN if found and found[0].value == value else f"it reads {found}"

    return attempt


async def _aiokafka(options: dict[str, Any], value: bytes) -> str:
    producer = AIOKafkaProducer(**options)
    consumer = AIOKafkaConsumer(**options, enable_auto_commit=False)
    try:
        await producer.start()
        offset = (await producer.send_and_wait(TOPIC, value, partition=0)).offset
        await consumer.start()
        consumer.assign([AioPartition(TOPIC, 0)])
        consumer.seek(AioPartition(TOPIC, 0), offset)
        found = await consumer.getone()
        return IN if found.value == value else f"it reads {found}"
    except AioError as error:
        return meaning(error)
    finally:
        await producer.stop()
        await consumer.stop()


def aiokafka(address: str, login: Login, value: bytes, seconds: float) -> str:
    options = {
        name: given for name, given in python_options(address, login).items() if not name.startswith("ssl_")
    }
    if login.has_tls:
        options["ssl_context"] = context = ssl.create_default_context(cafile=login.cafile)
        if login.certfile:
            context.load_cert_chain(login.certfile, login.keyfile)
    if login.token:
        options["sasl_oauth_token_provider"] = AioToken(login.token)
    return asyncio.run(asyncio.wait_for(_aiokafka(options, value), SECONDS))


def librdkafka_settings(address: str, login: Login) -> dict[str, Any]:
    """But for tokens."""
    settings: dict[str, Any] = {"bootstrap.servers": address, "security.protocol": login.protocol}
    if login.has_tls:
        settings["ssl.ca.location"] = login.cafile
        if login.certfile:
            settings["ssl.certificate.location"] = login.certfile
            settings["ssl.key.location"] = login.keyfile
    if login.mechanism:
        settings["sasl.mechanism"] = login.mechanism
    if login.user:
        settings["sasl.username"] = login.user
        settings["sasl.password"] = login.password
    return settings


def confluent_kafka(address: str, login: Login, value: bytes, seconds: float) -> str:
    told: list[object] = []
    delivered: list[Any] = []
    settings = {**librdkafka_settings(address, login), "error_cb": told.append, "log_level": 0}
    if login.token:
        settings["oauth_cb"] = lambda _: (login.token, time.time() + 300)
    producer = ConfluentProducer(settings)
    producer.produce(
        TOPIC, value, partition=0, on_delivery=lambda error, record: delivered.append((error, record))
    )
    ends = time.monotonic() + seconds
    while not delivered and set(map(meaning, told)) <= {CLOSED}:
        if time.monotonic() > ends:
            return CLOSED
        producer.poll(0.05)
    if not delivered:
        return next(said for said in map(meaning, told) if said != CLOSED)
    ((error, record),) = delivered
    if error is not None:
        return meaning(error)
    with closing(ConfluentConsumer({**settings, "group.id": "g", "enable.auto.commit": False})) as consumer:
        consumer.assign([Place(TOPIC, 0, record.offset())])
        while time.monotonic() < ends:
            found = consumer.poll(0.1)
            if found is not None and found.error() is None:  # the group that it asks for is not alice's
                return IN if found.value() == value else f"it reads {found.value()!r}"
        return "it reads nothing"


def kcat(address: str, login: Login, value: bytes, seconds: float) -> str:
    settings = [f"-X{name}={given}" for name, given in librdkafka_settings(address, login).items()]
    command = [Kcat().path or "kcat", "-b", address, "-t", TOPIC, "-p", "0", *settings]
    produce = [*command, "-P", f"-Xmessage.timeout.ms={1000 * seconds:.0f}"]
    done = subprocess.run(produce, input=value, capture_output=True)
    if done.returncode or b"ERROR" in done.stderr or b"%3|" in done.stderr:
        return meaning(done.stderr)
    consume = [*command, "-C", "-e", "-q", "-o", "beginning"]
    read = subprocess.run(consume, capture_output=True)
    return IN if value in read.stdout.split(b"\n") else f"it reads {read.stdout!r}, {read.stderr!r}"


def java_settings(address: str, login: Login) -> dict[str, str]:
    settings = {"bootstrap.servers": address, "security.protocol": login.protocol}
    if login.has_tls:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": login.cafile}
        if login.certfile:
            keys = store(Signed(login.certfile, login.keyfile))
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": keys}
    if not login.mechanism:
        return settings
    module = "org.apache.kafka.common.security"
    settings["sasl.mechanism"] = login.mechanism
    if login.user:
        kind = "plain.Plain" if login.mechanism == "PLAIN" else "scram.Scram"
        account = f'username="{login.user}" password="{login.password}"'
        settings["sasl.jaas.config"] = f"{module}.{kind}LoginModule required {account};"
        return settings
    return settings | {
        "sasl.jaas.config": f"{module}.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": f"{module}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": token_file(login).as_uri(),
    }


def token_file(login: Login) -> Path:
    """Beside the authority's certificate."""
    path = Path(login.cafile).with_name(f"token-{abs(hash(login.token)):x}")
    path.write_text(login.token)
    return path


def java(address: str, login: Login, value: bytes, seconds: float) -> str:
    settings = {**java_settings(address, login), "max.block.ms": f"{1000 * seconds:.0f}"}
    client = Java(settings)
    try:
        client.produce(address, TOPIC, [Record(value)])
        found = client.consume(address, TOPIC, 1)
    except RuntimeError as error:
        return meaning(error)
    return IN if value in [one.value for one in found] else f"it reads {found}"


def spark_options(address: str, login: Login) -> dict[str, str]:
    """Kafka's names, with a prefix; keys are read as they are."""
    settings = java_settings(address, login)
    if login.certfile:
        settings["ssl.keystore.location"] = str(store(Signed(login.certfile, login.keyfile)))
    return {f"kafka.{name}": given for name, given in settings.items()}


def spark(address: str, login: Login, value: bytes, seconds: float) -> str:
    """In the session that there is."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    session = SparkSession.active()
    options = spark_options(address, login) | {"kafka.default.api.timeout.ms": f"{1000 * seconds:.0f}"}
    try:
        frame = session.createDataFrame([(bytearray(value),)], "value binary")
        frame.write.format("dafka").options(**options, topic=TOPIC).mode("append").save()
        read = session.read.format("dafka").options(**options, subscribe=TOPIC).load()
        found = [bytes(row.value) for row in read.select("value").collect()]
    except PySparkException as error:
        return meaning(error)
    return IN if value in found else f"it reads {found}"


ATTEMPTS: dict[str, Attempt] = {
    "kafka-python": like_kafka_python(kafka),
    "the facade over TCP": like_kafka_python(compat.kafka),
    "aiokafka": aiokafka,
    "confluent-kafka": confluent_kafka,
    "kcat": kcat,
    "java": java,
    "spark": spark,
}
SILENT = ("kafka-python", "aiokafka")
"""Clients that only log why they could not connect."""
