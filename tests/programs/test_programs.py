"""Programs that others have published, on a broker of ours: swapped, and as they are under ``install()``.

They are fetched from the package index as they were published, so this runs only where it is wanted::

    DAFKA_TEST_PROGRAMS=1 ./scripts/test tests/programs

Each program comes with a scenario, a script that uses it for what it is made for and looks at the outcome
in the broker. It is run twice: after ``dafka swap-imports`` on the program, and with the program as it is
by ``python -m compat.kafka``. Nothing else about the programs is changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not os.environ.get("DAFKA_TEST_PROGRAMS"), reason="fetches programs; set DAFKA_TEST_PROGRAMS=1"
)


class Program(NamedTuple):
    """What is installed, the folders of it that are the program's own, and what is done with it."""

    requirement: str
    dependencies: tuple[str, ...]
    own: tuple[str, ...]
    scenario: str


PROGRAMS = [
    Program(
        "kq==2.2.1",
        ("dill",),
        ("kq",),
        """
        import logging, math
        from kafka import KafkaConsumer, KafkaProducer
        from kq import Job, Queue, Worker

        servers = broker.bootstrap_servers
        queue = Queue(topic="jobs", producer=KafkaProducer(bootstrap_servers=servers))
        queue.enqueue(math.factorial, 5)
        queue.using(key=b"k", partition=0).enqueue(Job(func=divmod, args=(7, 2)))
        queue.enqueue(int, "no number")
        seen = []
        consumer = KafkaConsumer(bootstrap_servers=servers, group_id="workers", auto_offset_reset="earliest")
        logging.getLogger("kq.worker").addHandler(logging.NullHandler())
        worker = Worker("jobs", consumer, callback=lambda status, message, job, result, *rest:
                        seen.append((status, message.offset, result)))
        assert worker.start(max_messages=3) == 3
        assert seen == [("success", 0, 120), ("success", 1, (3, 1)), ("failure", 2, None)], seen
        assert broker.committed("workers") == {("jobs", 0): 3}
        assert (worker.hosts, worker.topic, worker.group) == (servers, "jobs", "workers"), worker.hosts
        """,
    ),
    Program(
        "kafka-logging-handler==0.2.5",
        (),
        ("kafka_logger",),
        """
        import json, logging
        from kafka_logger.handlers import KafkaLoggingHandler

        handler = KafkaLoggingHandler(broker.bootstrap_servers, "logs", security_protocol="PLAINTEXT",
                                      additional_fields={"service": "test"}, flush_interval=0.2,
                                      unhandled_exception_logger=logging.getLogger("app"))
        logger = logging.getLogger("app")
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        for number in range(10):
            logger.info("message %d", number)
        records = broker.wait_for_records("logs", 10)
        messages = [json.loads(record.value) for record in records]
        assert [one["message"] for one in messages] == [f"message {number}" for number in range(10)]
        assert messages[0]["service"] == "test"
        handler.flush()
        handler.close()
        """,
    ),
    Program(
        "kafka-python-log-handler==0.0.1.dev12",
        (),
        ("kafka_handler",),
        """
        import logging
        from kafka_handler import KafkaLogHandler

        logger = logging.getLogger("app")
        logger.setLevel(logging.INFO)
        logger.addHandler(KafkaLogHandler("logs", key="k", partition=0, raw_logging=True,
                                          bootstrap_servers=broker.bootstrap_servers, linger_ms=10))
        logger.warning("Well hello there")
        (record,) = broker.wait_for_records("logs")
        assert record.key == b"k" and record.value.startswith(b"Well hello there - "), record
        """,
    ),
    Program(
        "opentelemetry-instrumentation-kafka-python==0.66b1",
        ("opentelemetry-sdk",),
        ("opentelemetry/instrumentation/kafka",),
        """
        from opentelemetry.instrumentation.kafka import KafkaInstrumentor
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from kafka import KafkaConsumer, KafkaProducer

        spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(spans))
        KafkaInstrumentor().instrument(tracer_provider=provider, skip_dep_check=True)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("orders", b"one").get(5)
        consumer = KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, group_id="g",
                                 auto_offset_reset="earliest")
        record = next(consumer)
        assert record.value == b"one" and dict(record.headers)["traceparent"], record
        sent, received = spans.get_finished_spans()
        assert (sent.name, received.name) == ("orders send", "orders receive"), (sent.name, received.name)
        assert received.context.trace_id == sent.context.trace_id or received.links
        assert broker.bootstrap_servers.split(":")[0] in str(sent.attributes), sent.attributes
        KafkaInstrumentor().uninstrument()
        """,
    ),
    Program(
        "django-logpipe==1.6.0",
        ("django", "djangorestframework", "lru-dict", "boto3"),
        ("logpipe",),
        """
        import django
        from django.conf import settings

        settings.configure(
            INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "logpipe"],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            LOGPIPE={"KAFKA_BOOTSTRAP_SERVERS": [broker.bootstrap_servers],
                     "KAFKA_CONSUMER_KWARGS": {"group_id": "pipe"}},
        )
        django.setup()
        from django.core.management import call_command
        call_command("migrate", verbosity=0)
        from logpipe import Consumer, Producer
        from logpipe.models import KafkaOffset
        from rest_framework import serializers

        saved = []

        class State(serializers.Serializer):
            MESSAGE_TYPE, VERSION, KEY_FIELD = "us-state", 1, "code"
            code = serializers.CharField()
            name = serializers.CharField()

            def save(self):
                saved.append(dict(self.validated_data))

        broker.create_topic("states", 2)
        producer = Producer("states", State)
        for code, name in (("NY", "New York"), ("CA", "California"), ("TX", "Texas")):
            producer.send({"code": code, "name": name})
        consumer = Consumer("states", consumer_timeout_ms=300)
        consumer.register(State)
        consumer.run(iter_limit=3)
        assert sorted(one["code"] for one in saved) == ["CA", "NY", "TX"], saved
        assert sum(row.offset for row in KafkaOffset.objects.all()) == 3
        again = Consumer("states", consumer_timeout_ms=300)
        again.register(State)
        again.run(iter_limit=1)
        assert len(saved) == 3, saved
        """,
    ),
    Program(
        "nameko-kafka==0.2.1",
        ("nameko", "pymongo"),
        ("nameko_kafka",),
        """
        from nameko_kafka.consumers import DefaultConsumer, ExactlyOnceConsumer
        from nameko_kafka.storage.base import OffsetStorage

        class Memory(OffsetStorage):
            stored = {}
            def setup(self): pass
            def stop(self): pass
            def read(self, topic, partition): return self.stored.get((topic, partition), 0)
            def write(self, offsets): self.stored.update(offsets)

        broker.preload("t", [b"a", b"b", b"c"])
        config = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest",
                  "consumer_timeout_ms": 500}
        seen = []
        consumer = DefaultConsumer("t", group_id="default", **config)
        consumer.start(lambda message: seen.append(message.value))
        assert seen == [b"a", b"b", b"c"], seen
        consumer.close()
        assert broker.committed("default") == {("t", 0): 3}
        """,
    ),
]

START = """
    import os, sys
    from dafka.testing import TestBroker

    broker = TestBroker().start()
"""
END = """
    broker.stop()
    print("done")
"""


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda program: program.requirement)
def program(request, tmp_path_factory):
    """A program and the folder it is installed in, with its dependencies, but without kafka-python."""
    chosen: Program = request.param
    folder = tmp_path_factory.mktemp("program")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        subprocess.run(
            [*install, "--target", str(folder), chosen.requirement, *chosen.dependencies],
            check=True,
            capture_output=True,
            text=True,
            timeout=180,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{chosen.requirement} cannot be installed here: {error.stderr or error}")
    # Some ask for an older kafka-python. The installed one beside the facade counts.
    for brought in (*folder.glob("kafka"), *folder.glob("kafka_python-*")):
        shutil.rmtree(brought)
    return chosen, folder


def run(arguments: list[object], *folders: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*folders, ROOT)))}
    environment.pop("DAFKA_EMBEDDED", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["done"]), done.stdout + done.stderr


def script(chosen: Program, path: Path) -> Path:
    path.write_text("".join(textwrap.dedent(part) for part in (START, chosen.scenario, END)))
    return path


def test_as_it_is_under_install(program, tmp_path):
    chosen, folder = program
    run(["-m", "compat.kafka", script(chosen, tmp_path / "scenario.py")], folder)


def test_swapped(program, tmp_path):
    chosen, folder = program
    swapped = tmp_path / "swapped"
    for own in chosen.own:
        shutil.copytree(folder / own, swapped / own)
    scenario = script(chosen, tmp_path / "scenario.py")
    paths = [scenario, *(swapped / own for own in chosen.own)]
    subprocess.run([sys.executable, "-m", "dafka.cli", "swap-imports", *paths], check=True, timeout=200)
    run([scenario], swapped, folder)
