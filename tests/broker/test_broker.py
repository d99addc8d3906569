"""Broker: the object that users start and stop."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap

import forking
import pytest
from broker.clients import Client, batch
from broker.transactions.transactional import Producer as TransactionalProducer
from timing import until

from dafka import Broker, Store, Tower
from dafka.broker import BrokerStoppedError
from dafka.log import DamagedError, LogLockedError, NotALogError
from dafka.log.table import pack_key
from dafka.mesh.endpoint import Endpoint
from dafka.protocol.batch import with_producer

IMPORTS = f"import sys; sys.path[:0] = {sys.path!r}\n"


def test_start_and_stop_may_be_repeated(tmp_path):
    broker = Broker(tmp_path)
    broker.stop()
    assert broker.start() is broker
    broker.start()
    assert broker.running
    address = broker.bootstrap_servers
    broker.stop()
    broker.stop()
    assert not broker.running
    broker.start()
    assert broker.bootstrap_servers == address
    broker.stop()
    assert os.path.isdir(broker.path)


def test_a_broker_that_does_not_run_has_no_address(tmp_path):
    broker = Broker(tmp_path)
    assert broker.path == str(tmp_path)
    assert repr(broker) == f"<Broker {str(tmp_path)!r}, stopped>"
    with pytest.raises(BrokerStoppedError, match="start"):
        _ = broker.bootstrap_servers


def test_brokers_run_side_by_side():
    with Broker() as one, Broker() as other:
        Client(one).create("t")
        assert Client(other).call("metadata", None).topics == {}
        assert one.bootstrap_servers != other.bootstrap_servers
        assert one.tower.addresses != other.tower.addresses


def test_a_broker_joins_the_tower_it_is_given():
    with Tower() as tower:
        with Broker(tower=tower) as broker:
            assert broker.tower is tower
        with Broker(tower=tower.addresses) as broker:
            assert broker.tower == tower.addresses
        assert tower.addresses


def test_a_folder_has_one_broker_at_a_time_and_the_second_leaves_nothing_behind(tmp_path):
    with Broker(tmp_path) as first:
        second = Broker(tmp_path)
        with pytest.raises(LogLockedError, match=str(os.getpid())):
            second.start()
        assert not second.running
        Client(first).create("t")
    with second:
        assert list(Client(second).call("metadata", None).topics) == ["t"]


def test_a_folder_without_a_name_is_refused():
    for make in (Broker, Store):
        with pytest.raises(ValueError, match=r"the name of a folder.*; the current folder is '\.'"):
            make("")
        for wrong in ("a\0b", "\ud800"):
            with pytest.raises(ValueError, match="none can be called"):
                make(wrong)
        with pytest.raises(TypeError, match="path is the name of a folder, not 5"):
            make(5)
    with pytest.raises(TypeError, match="path is the name of a folder, not None"):
        Store(None)


def test_folders_are_named_by_octets_as_well(tmp_path):
    with Tower() as tower, Store(os.fsencode(tmp_path / "store"), tower=tower) as store:
        assert store.path == str(tmp_path / "store")
    (tmp_path / "thesis.tex").write_text("%")
    with pytest.raises(NotALogError, match="it holds"):
        Store(os.fsencode(tmp_path))


def test_a_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("%")
    with pytest.raises(NotALogError, match=str(tmp_path)):
        Broker(tmp_path).start()
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_broker_that_cannot_start_leaves_the_mesh_and_its_folder(tmp_path):
    with Tower() as tower:
        with Broker(tmp_path, tower=tower) as broker:
            client = Client(broker)
            client.create("t")
            assert TransactionalProducer(client).add(("t", 0)) is None
        connection = sqlite3.connect(tmp_path / "cache.db")
        with connection:
            damaged = "UPDATE Cache SET value = zeroblob(length(value)) WHERE raw = 1 AND key = ?"
            assert connection.execute(damaged, (pack_key("transactions", "x"),)).rowcount == 1
        connection.close()
        endpoints = len(Endpoint._open)
        for _ in range(2):  # not locked by the first attempt
            with pytest.raises(DamagedError, match="transactions"):
                Broker(tmp_path, tower=tower).start()
        assert len(Endpoint._open) <= endpoints  # those of earlier tests may go meanwhile


def test_durability_power_is_passed_to_the_log(tmp_path):
    with Broker(tmp_path, durability="power") as broker:
        client = Client(broker)
        assert client.core.log.durability == "power"
        client.create("t")
        assert client.produce("t", b"a").error is None


def test_many_brokers_one_after_the_other_leave_nothing_open():
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))

    def use() -> None:
        with Broker() as broker:
            client = Client(broker)
            client.create("t")
            client.call("produce", {("t", 0): [batch(b"a")]})

    for _ in range(5):
        use()
    before = descriptors()
    for _ in range(30):
        use()
    # ZeroMQ closes its sockets in the background, so those of the last broker may still be there, and what
    # comes once for all (a thread more in a pool) may have come meanwhile.
    until(lambda: descriptors() < before + 15)


def run(script: str, code: int = 0) -> str:
    """What a fresh interpreter prints; it must end with ``code`` and say nothing on stderr."""
    ended = forking.run(
        # Python 3.12 and newer warn of a fork in a process with threads, which is what is tested here.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IMPORTS + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (ended.returncode, ended.stderr) == (code, "")
    return ended.stdout


def test_a_running_broker_is_stopped_when_the_interpreter_exits(tmp_path):
    script = f"""
        from broker.clients import Client, batch
        from dafka import Broker

        forgotten = Broker().start()
        print(forgotten.path)
        other = Broker({str(tmp_path)!r}).start()
        client = Client(other)
        client.create("t")
        client.call("produce", {{("t", 0): [batch(b"a")]}}, acks=0)
    """
    assert not os.path.exists(run(script).strip())
    with Broker(tmp_path) as broker:
        assert Client(broker).values("t") == [b"a"]


def test_a_forked_child_gets_a_clear_error_and_the_parent_notices_nothing(tmp_path):
    script = f"""
        import os, sys
        from broker.clients import Client
        from dafka import Broker
        from dafka.hub.hub import ForkedError

        broker = Broker().start()
        client = Client(broker)
        client.create("t")
        pid = os.fork()
        if not pid:
            for use in (lambda: client.call("metadata", None), broker.stop, lambda: broker.bootstrap_servers):
                try:
                    use()
                except ForkedError as error:
                    pass
                else:
                    os._exit(1)
            with Broker({str(tmp_path)!r}) as own:
                Client(own).create("u")
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert os.path.isdir(broker.path)
        assert client.produce("t", b"a").error is None
        broker.stop()
    """
    run(script)
    with Broker(tmp_path) as broker:
        assert list(Client(broker).call("metadata", None).topics) == ["u"]


def test_its_metrics_count_the_records_of_clients_and_nothing_twice():
    with Broker() as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"one", b"two")
        content = with_producer(batch(b"three"), client.call("init_producer_id", None, 1.0).producer_id, 0, 0)
        for _ in range(2):  # the second one is a duplicate
            assert client.call("produce", {("t", 0): [content]})["t", 0].base_offset == 2
        metrics = broker.metrics()
        stored = client.fetch("t").batches
    assert metrics["records_in"] == 3
    assert metrics["bytes_in"] == sum(map(len, stored))


def test_the_first_look_at_its_metrics_loads_the_mesh_outside_the_hub():
    """ZeroMQ and the mesh take some 100 ms: every client would wait for them."""
    program = """
        import sys, tempfile, threading
        from dafka import Broker

        class Threads:
            loaded = {}
            def find_spec(self, name, path=None, target=None):
                self.loaded.setdefault(name, threading.current_thread() is threading.main_thread())

        with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
            sys.meta_path.insert(0, Threads())
            broker.metrics()
        print(Threads.loaded["dafka.broker.records.node"])
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True)  # a forked one has all modules
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
