"""The facade in somebody else's process: each case in a subprocess of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, *, embedded: Path | None = None, timeout: float = 250) -> str:
    """Run a program; its standard output. It must end well and write nothing to standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DAFKA_EMBEDDED", None)
    if embedded is not None:
        environment["DAFKA_EMBEDDED"] = str(embedded)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


COUNT = """
from compat.kafka import KafkaConsumer, TopicPartition
consumer = KafkaConsumer("t", auto_offset_reset="earliest")
count, t0 = 0, TopicPartition("t", 0)
while not consumer.assignment() or consumer.position(t0) < consumer.end_offsets([t0])[t0]:
    count += sum(map(len, consumer.poll(300).values()))
print(count)
"""


def test_records_that_were_not_flushed_are_sent_at_exit(tmp_path: Path) -> None:
    run(
        """
        from compat.kafka import KafkaProducer
        producer = KafkaProducer(linger_ms=60_000)
        for number in range(5000):
            producer.send("t", b"%d" % number)
        """,
        embedded=tmp_path,
    )
    assert run(COUNT, embedded=tmp_path) == "5000\n"


def test_records_of_a_forgotten_producer_are_sent_at_exit(tmp_path: Path) -> None:
    run(
        """
        from compat.kafka import KafkaProducer
        def send():
            producer = KafkaProducer(linger_ms=60_000)
            for number in range(5000):
                producer.send("t", b"%d" % number)
        send()
        """,
        embedded=tmp_path,
    )
    assert run(COUNT, embedded=tmp_path) == "5000\n"


def test_a_program_may_end_with_everything_open(tmp_path: Path) -> None:
    out = run(
        """
        from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
        admin = KafkaAdminClient()
        producer = KafkaProducer()
        consumer = KafkaConsumer("t", group_id="g", auto_offset_reset="earliest")
        producer.send("t", b"v")
        print(next(consumer).value)
        """,
        embedded=tmp_path,
    )
    assert out == "b'v'\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_a_forked_child_clients_say_that_they_belong_to_the_parent() -> None:
    out = run(
        """
        import os, sys
        from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
        from dafka import Broker
        with Broker() as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
            consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers,
                                     auto_offset_reset="earliest", group_id="g")
            for _ in range(10):
                producer.send("t", b"v")
            next(consumer)
            pid = os.fork()
            if pid == 0:
                for use in (lambda: producer.send("t", b"v"), lambda: consumer.poll(),
                            lambda: producer.flush(1), lambda: consumer.committed(TopicPartition("t", 0)),
                            lambda: list(consumer)):
                    try:
                        use()
                        print("nothing")
                    except Exception as error:
                        print(type(error).__name__)
                sys.stdout.flush()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            producer.send("t", b"v").get(100)
            print(producer.metrics()["producer-metrics"]["record-send-total"])
            consumer.close()
            producer.close()
        """
    )
    assert out.split() == ["ForkedError"] * 5 + ["11.0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_ends_without_noise() -> None:
    out = run(
        """
        import os, sys
        from compat.kafka import KafkaProducer
        from dafka import Broker
        broker = Broker().start()
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
        future = producer.send("t", b"v")
        if os.fork() == 0:
            del producer, future
            sys.exit(0)
        os.wait()
        producer.close()
        print(future.get(1).offset)
        broker.stop()
        """
    )
    assert out.split()[-1] == "0"


def test_in_a_patched_gevent_program_only_the_calling_greenlet_waits() -> None:
    out = run(
        """
        from gevent import monkey
        monkey.patch_all()
        import gevent
        from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
        from dafka import Broker

        ticks = 0
        def tick():
            global ticks
            while True:
                ticks += 1
                gevent.sleep(0.005)

        gevent.spawn(tick)
        with Broker() as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=100_000,
                                     delivery_timeout_ms=200_000)

            def after_ticks(act):  # which never comes if the thread is blocked
                before = ticks
                while ticks - before < 3:
                    gevent.sleep(0.005)
                act()

            future = producer.send("t", b"v")
            gevent.spawn(after_ticks, producer.flush)
            assert future.get(50).offset == 0
            with gevent.Timeout(0.05, False):
                producer.send("t", b"w").get()
                raise SystemExit("should have timed out")
            producer.flush()
            consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers)
            while not consumer.assignment():
                assert consumer.poll(200) == {}
            consumer.position(TopicPartition("t", 0))
            quick = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
            gevent.spawn(after_ticks, lambda: quick.send("t", b"wakes"))
            assert consumer.poll(50_000) != {}
            consumer.seek_to_beginning()
            values = []
            def read():
                for record in consumer:
                    values.append(record.value)
                    if len(values) == 203:
                        return
            reader = gevent.spawn(read)
            senders = [gevent.spawn(lambda: [quick.send("t", b"x").get(100) for _ in range(2)])
                       for _ in range(100)]
            gevent.joinall([reader, *senders], timeout=200, raise_error=True)
            print(len(values))
            consumer.close()
            quick.close()
            producer.close()
        """
    )
    assert out == "203\n"


def test_from_asyncio_through_executors() -> None:
    out = run(
        """
        import asyncio
        from compat.kafka import KafkaConsumer, KafkaProducer
        from dafka import Broker

        async def main(address):
            loop = asyncio.get_running_loop()
            producer = await loop.run_in_executor(None, lambda: KafkaProducer(bootstrap_servers=address))
            futures = [producer.send("t", b"%d" % number) for number in range(100)]
            got = await asyncio.gather(*(loop.run_in_executor(None, one.get, 10) for one in futures))
            consumer = KafkaConsumer("t", bootstrap_servers=address, auto_offset_reset="earliest")
            records = await loop.run_in_executor(None, lambda: consumer.poll(100_000))
            print(len(got), sum(map(len, records.values())))
            await loop.run_in_executor(None, producer.close)
            consumer.close()

        with Broker() as broker:
            asyncio.run(main(broker.bootstrap_servers))
        """
    )
    assert out == "100 100\n"


def test_an_interrupted_wait_leaves_everything_usable() -> None:
    out = run(
        """
        import os, signal, threading
        from compat.kafka import KafkaConsumer, KafkaProducer
        from dafka import Broker
        with Broker() as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
            future = producer.send("t", b"v")
            try:  # wherever this thread is by then
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                future.get(100)
            except KeyboardInterrupt:
                print("interrupted")
            producer.flush(100)
            print(future.get().offset)
            producer.close()
        """
    )
    assert out.startswith("interrupted\n")


def test_from_plain_threads() -> None:
    out = run(
        """
        import threading
        from compat.kafka import KafkaConsumer, KafkaProducer
        from dafka import Broker

        with Broker(default_partitions=4) as broker:
            servers = broker.bootstrap_servers
            producer = KafkaProducer(bootstrap_servers=servers)
            read, errors = [], []

            def send(thread):
                for number in range(500):
                    producer.send("t", b"%d-%d" % (thread, number), key=b"%d" % thread)

            def consume():
                consumer = KafkaConsumer("t", bootstrap_servers=servers, group_id="g",
                                         auto_offset_reset="earliest")
                while len(read) < 4000:
                    read.extend(record.value for records in consumer.poll(50).values() for record in records)
                consumer.close()

            threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
            threads += [threading.Thread(target=consume) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            producer.close()
            print(len(read), len(set(read)))
        """
    )
    assert out == "4000 4000\n"


def test_in_a_gevent_program_that_is_not_patched() -> None:
    out = run(
        """
        import gevent
        from compat.kafka import KafkaConsumer, KafkaProducer
        from dafka import Broker

        with Broker() as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
            consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers,
                                     auto_offset_reset="earliest", consumer_timeout_ms=100_000)

            def send(number):
                return producer.send("t", b"%d" % number).get(100).offset

            def read():
                return [next(consumer).value for _ in range(20)]

            sent = [gevent.spawn(send, number) for number in range(20)]
            gevent.joinall(sent, raise_error=True)
            reader = gevent.spawn(read)
            reader.join()
            print(sorted(one.value for one in sent) == list(range(20)), len(reader.value))
            consumer.close()
            producer.close()
        """
    )
    assert out == "True 20\n"


SPAWNING = """
import multiprocessing, sys
from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker

def child(servers):
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send("t", b"from the child").get(100)
    consumer = KafkaConsumer("t", bootstrap_servers=servers, auto_offset_reset="earliest", group_id="g")
    assert sorted(next(consumer).value for _ in range(2)) == [b"from the child", b"from the parent"]
    consumer.close()

def main():
    with Broker(listen="127.0.0.1:0") as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("t", b"from the parent").get(100)
            process = multiprocessing.get_context("spawn").Process(
                target=child, args=(broker.bootstrap_servers,))
            process.start()
            process.join(150)
            print(process.exitcode, producer.send("t", b"afterwards").get(100).offset)

if __name__ == "__main__":
    main()
"""


def test_a_spawned_process_uses_the_parents_broker_through_its_listener(tmp_path: Path) -> None:
    program = tmp_path / "spawning.py"
    program.write_text(SPAWNING)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.stdout, done.stderr) == ("0 2\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_may_have_a_broker_and_clients_of_its_own() -> None:
    out = run(
        """
        import os, sys
        from compat.kafka import KafkaConsumer, KafkaProducer
        from dafka import Broker

        def use(word):
            with Broker() as broker:
                with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                    producer.send("t", word).get(100)
                consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers,
                                         auto_offset_reset="earliest")
                print(next(consumer).value.decode())
                consumer.close()
                sys.stdout.flush()

        use(b"before")
        pid = os.fork()
        if pid == 0:
            use(b"child")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        use(b"parent")
        """
    )
    assert out.split() == ["before", "child", "parent"]


def test_a_broker_that_hangs_does_not_keep_the_interpreter_from_ending() -> None:
    out = run(
        """
        from compat.kafka import KafkaConsumer, KafkaProducer
        from compat.kafka.producer import kafka
        from dafka.testing import TestBroker

        broker = TestBroker().start()
        broker.preload("t", [b"v"])
        consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="g",
                                 auto_offset_reset="earliest")
        print(next(consumer).value)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("t", b"sent").get(100)
        broker.hang()
        producer.send("t", b"not sent any more")
        kafka.EXIT_TIMEOUT = 0.5
        import logging
        logging.disable(logging.CRITICAL)
        """
    )
    assert out == "b'v'\n"
