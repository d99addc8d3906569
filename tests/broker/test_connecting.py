"""Finding a broker by its address, in this process or by way of DAFKA_EMBEDDED."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import forking
import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from dafka import Broker
from dafka.broker import connect


def test_a_broker_is_found_by_its_address(broker):
    connection = connect(broker.bootstrap_servers, 0)
    assert connection.call("metadata", ()).brokers == [(0, "127.0.0.1", port_of(broker))]


def port_of(broker: Broker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


@pytest.mark.parametrize("form", ["localhost:{}", "LOCALHOST:{}", "PLAINTEXT://127.0.0.1:{}", "[::1]:{}"])
def test_other_names_of_loopback_mean_the_same(broker, form):
    assert connect(form.format(port_of(broker)), 0).broker is connect(broker.bootstrap_servers, 0).broker


def test_several_addresses_are_tried_in_their_order(broker):
    with Broker() as other:
        nobody = "127.0.0.1:1"
        for servers in (
            [nobody, other.bootstrap_servers, broker.bootstrap_servers],
            f"{nobody},{other.bootstrap_servers},{broker.bootstrap_servers}",
        ):
            assert connect(servers, 0).call("metadata", ()).brokers[0][2] == port_of(other)


def test_an_address_without_a_broker_is_a_timeout_as_in_kafka_python():
    started = time.monotonic()
    with pytest.raises(KafkaTimeoutError, match=r"from \['127.0.0.1:1', 'nowhere:2'\]") as raised:
        connect(["127.0.0.1:1", "nowhere:2"], 0.2)
    assert isinstance(raised.value.__cause__, KafkaConnectionError)  # the outcome of TCP
    assert 0.2 <= time.monotonic() - started < 30


@pytest.mark.parametrize("servers", ["127.0.0.1:http", "", [], [""], ["127.0.0.1:1", ":2"]])
def test_servers_that_are_none_are_a_value_error(servers):
    with pytest.raises(ValueError, match=r"bootstrap_servers=.* is not HOST:PORT, several with commas"):
        connect(servers, 0)


@pytest.mark.parametrize("servers", [None, 9092, [9092]])
def test_servers_of_another_type_are_a_type_error(servers):
    with pytest.raises(TypeError, match=r"bootstrap_servers=.* is not HOST:PORT, several with commas"):
        connect(servers, 0)


def test_a_broker_that_starts_later_is_waited_for(tmp_path):
    broker = Broker(tmp_path).start()
    address = broker.bootstrap_servers
    broker.stop()  # it comes back under the same port
    found = []
    thread = threading.Thread(target=lambda: found.append(connect(address, 100)))
    thread.start()
    with broker.start():
        thread.join(100)
        assert broker.bootstrap_servers == address
        assert found[0].call("metadata", ()).cluster_id


def test_a_stopped_broker_is_not_found():
    with Broker() as broker:
        address = broker.bootstrap_servers
    with pytest.raises(KafkaTimeoutError):
        connect(address, 0)


def run(script: str, start: Any = forking.run, **environment: str) -> str:
    """What a program prints; it must end well and say nothing on stderr."""
    ended = start(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n" + textwrap.dedent(script)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_with_dafka_embedded_every_address_means_one_broker_on_that_folder(tmp_path):
    folder = str(tmp_path / "data")
    script = """
        from concurrent.futures import ThreadPoolExecutor
        from dafka.broker import connect
        from dafka.broker.interface.broker import TopicSpec

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(connect, ["localhost:9092", "kafka-1:9092,kafka-2:9092", "other:1"] * 4))
        assert len({id(connection.broker) for connection in found}) == 1
        print(sorted(found[0].call("metadata", None).topics))
        found[0].call("create_topics", {"kept": TopicSpec(1)})
    """
    assert run(script, DAFKA_EMBEDDED=folder) == "[]\n"
    assert run(script, DAFKA_EMBEDDED=folder) == "['kept']\n"


def test_with_dafka_embedded_a_running_broker_keeps_its_address(tmp_path):
    script = """
        from dafka import Broker
        from dafka.broker import connect

        with Broker() as broker:
            assert connect(broker.bootstrap_servers).broker is not connect("localhost:9092").broker
        with Broker("DIR") as same:
            pass
    """.replace("DIR", str(tmp_path / "other"))
    run(script, DAFKA_EMBEDDED=str(tmp_path / "data"))


def test_with_dafka_embedded_a_broker_that_has_the_folder_already_is_taken(tmp_path):
    script = """
        import os
        from dafka import Broker
        from dafka.broker import connect

        with Broker(os.environ["DAFKA_EMBEDDED"]) as broker:
            assert connect(broker.bootstrap_servers).broker is connect("kafka:9092").broker
    """
    run(script, DAFKA_EMBEDDED=str(tmp_path / "data"))


def test_in_a_patched_program_greenlets_connect_side_by_side(tmp_path):
    script = """
        from gevent import monkey; monkey.patch_all()
        import gevent
        from dafka.broker import connect

        greens = [gevent.spawn(connect, "kafka:9092", 10) for _ in range(5)]
        gevent.joinall(greens, timeout=200, raise_error=True)
        assert len({id(green.value.broker) for green in greens}) == 1
    """
    run(script, subprocess.run, DAFKA_EMBEDDED=str(tmp_path / "data"))
