"""Brokers and nodes that their program drops: closed, with a warning, once nobody uses them."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker, Store, Tower
from dafka.broker import running as registry
from dafka.hub.hub import get_hub

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <Broker:ResourceWarning")


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def brokers() -> list[Path]:
    return [Path(known.path) for known in list(registry._brokers.values())]


def becomes(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


MAKERS: dict[str, Callable[[Path], Any]] = {
    "Broker": lambda folder: Broker(folder).start(),
    "Broker that listens": lambda folder: Broker(folder, listen="127.0.0.1:0").start(),
    "Broker with a mesh": lambda folder: _with_a_mesh(Broker(folder).start()),
    "Store": lambda folder: Store(folder, tower=Tower()),
    "Tower": lambda folder: Tower(),
}


def _with_a_mesh(broker: Broker) -> Broker:
    _ = broker.tower
    return broker


@contextmanager
def unclosed(kind: str, count: int) -> Iterator[None]:
    """So many warnings come of what is made and dropped in the block, and no more."""
    warning = re.compile(f"unclosed <{kind.split()[0]} .*: dropped without (stop|close)")
    gc.collect()  # objects dropped by earlier tests are not this test's
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield

        def warned() -> int:
            gc.collect()  # again: the hub's thread may still be busy with the call that made it
            return sum(warning.match(str(one.message)) is not None for one in caught)

        assert becomes(lambda: warned() >= count)
        assert warned() == count


@pytest.mark.parametrize("kind", MAKERS)
def test_dropped_objects_give_everything_back_and_warn(tmp_path: Path, kind: str) -> None:
    make = MAKERS[kind]
    with unclosed(kind, 1):
        make(tmp_path / "first")  # with what comes once for all: threads of the pool, contexts
    assert becomes(lambda: tmp_path / "first" not in brokers())
    get_hub().run(lambda: None)
    before = descriptors()
    with unclosed(kind, 10):
        for number in range(10):
            make(tmp_path / str(number))
    assert becomes(lambda: descriptors() < before + 8)  # what comes once for all may have come meanwhile


def test_a_dropped_broker_loses_nothing_and_its_folder_is_free(tmp_path: Path) -> None:
    broker = Broker(tmp_path).start()
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("orders", b"one").get(timeout=100)
    del broker, producer
    gc.collect()
    assert becomes(lambda: tmp_path not in brokers())
    with Broker(tmp_path) as again:
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=again.bootstrap_servers, auto_offset_reset="earliest"
        )
        assert next(consumer).value == b"one"
        consumer.close()


def test_a_temporary_folder_goes_with_a_dropped_broker() -> None:
    folder = Broker().start().path
    gc.collect()
    assert becomes(lambda: not os.path.exists(folder))


def test_a_client_keeps_a_broker_that_nobody_else_has() -> None:
    broker = Broker().start()
    folder = broker.path
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    del broker
    gc.collect()
    assert producer.send("orders", b"one").get(timeout=100).offset == 0
    producer.close()
    assert becomes(lambda: not os.path.exists(folder))


def test_a_broker_that_was_stopped_or_never_started_is_dropped_without_a_word() -> None:
    gc.collect()  # objects dropped by earlier tests are not this test's
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        Broker()
        Broker().start().stop()
        with Broker():
            pass
        with Tower():
            pass
        gc.collect()
    said = [str(one.message) for one in caught]
    assert not [one for one in said if re.match("unclosed <(Broker|Tower) ", one)]


def test_objects_alive_when_the_interpreter_exits_are_closed_without_a_warning(tmp_path: Path) -> None:
    script = f"""
        from dafka import Broker, Store, Tower
        broker = Broker().start()
        tower = Tower()
        store = Store({str(tmp_path / "db")!r}, tower=tower)
        print(broker.path)
    """
    ended = subprocess.run(
        [
            sys.executable,
            *("-W", "always::ResourceWarning", "-W", "ignore::DeprecationWarning"),
            *("-c", textwrap.dedent(script)),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert (ended.returncode, "unclosed <" in ended.stderr) == (0, False)
    assert not os.path.exists(ended.stdout.strip())


def test_a_forked_child_drops_what_its_parent_has() -> None:
    script = """
        import gc, os, warnings
        from dafka import Broker
        warnings.simplefilter("error")
        broker = Broker().start()
        if not (pid := os.fork()):
            del broker
            gc.collect()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert os.path.isdir(broker.path)
        broker.stop()
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=200,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), PYTHONWARNINGS="ignore"),
    )
    assert (ended.returncode, ended.stderr) == (0, "")
