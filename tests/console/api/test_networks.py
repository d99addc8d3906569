"""The mesh, the overlay and ZPER through the API."""

from __future__ import annotations

import time
from contextlib import contextmanager

import pytest
from cli.tools import mesh, running
from console.asking import SECONDS, Client

import dafka.broker
from dafka import Consumer, Producer, Store, Tower
from dafka.console import Console, ConsoleOptions, NetworkOptions
from dafka.overlay import Endpoint
from dafka.testing import TestBroker
from dafka.zper import Reader, Writer, ZperOptions


@pytest.fixture(scope="module")
def shared(embedded):
    """Only a broker of this process answers these requests."""
    return embedded


@contextmanager
def console_of(broker, **networks):
    connection = dafka.broker.connect(broker.bootstrap_servers, SECONDS)
    with Console(connection, ConsoleOptions(networks=NetworkOptions(**networks))) as console:
        yield Client(console.url)


def until(ask, wanted):
    deadline = time.monotonic() + SECONDS
    while not wanted(found := ask()):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_networks_that_are_not_connected_are_left_out(over_tcp):
    client = Client(over_tcp)
    assert client.get("/api/networks") == {"kafka": True, "mesh": False, "overlay": False, "zper": False}
    assert client.get("/api/mesh") == {"connected": False}
    assert client.get("/api/overlay") == {"connected": False}
    assert client.get("/api/zper") == {"connected": False, "own": None, "controllers": []}
    assert client.ask("GET", "/api/mesh/nodes/x").status == 404


def test_a_mesh_from_outside_and_from_within(shared, tmp_path):
    with (
        Tower() as tower,
        Store(tmp_path / "one", tower=tower) as store,
        Producer("hello", tower=tower) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
        console_of(shared, tower=tower.addresses) as client,
    ):
        for number in range(10):
            producer.send(b"%d" % number)
        producer.flush(SECONDS)

        def is_whole(mesh):
            rows = mesh["partitions"]
            return rows and rows[0]["stores"] and rows[0]["followers"]

        mesh = until(lambda: client.get("/api/mesh", search="HELL"), is_whole)
        (row,) = mesh["partitions"]
        assert (row["topic"], row["partition"], row["end"]) == ("hello", producer.address, 10)
        assert row["producer"] and row["stores"] == [{"store": store.address, "end": 10, "behind": 0}]
        kinds = {one["address"]: one["kind"] for one in mesh["nodes"]}
        assert kinds == {store.address: "store", row["followers"][0]: "consumer"}
        assert mesh["towers"][0]["heard"]
        node = client.get(f"/api/mesh/nodes/{store.address}")
        assert node["metrics"]["records_in"] == 10  # it is in this process
        assert client.get("/api/mesh", search="none")["partitions"] == []
        assert consumer.poll(1.0) is not None


def test_a_mesh_is_shown_without_a_kafka(tmp_path):
    with Tower() as tower, Store(tmp_path / "one", tower=tower) as store:
        options = ConsoleOptions(networks=NetworkOptions(tower=tower.addresses))
        with Console(options=options) as console:
            client = Client(console.url)
            until(
                lambda: client.get("/api/mesh"),
                lambda mesh: store.address in {one["address"] for one in mesh["nodes"]},
            )
            assert client.get("/api/networks")["kafka"] is False
            assert client.get("/api/notices") == {"notices": []} and client.get("/health")["ready"]
            for path in ("/api/cluster", "/api/topics", "/api/groups", "/api/access", "/api/rates"):
                answer = client.ask("GET", path)
                assert (answer.status, answer.json["error"]) == (501, "no-broker"), path
    with pytest.raises(ValueError, match="needs a connection"):
        Console()


def test_a_node_elsewhere_shows_its_metrics(tmp_path):
    """Each of them, in a process of its own, announces its port; a tower's is named."""
    pytest.importorskip("prometheus_client", reason="the extra metrics is not installed")
    with Tower() as tower:
        metrics = ("--metrics-port", "0")
        with (
            running("store", str(tmp_path / "one"), *mesh(tower), *metrics) as store,
            running("produce", "hello", *mesh(tower), *metrics) as producer,
            running("consume", "hello", *mesh(tower), *metrics) as consumer,
        ):
            address = store.stderr.readline().split()[1]
            url = store.stderr.readline().split()[-1]
            named = url.removesuffix("/metrics")
            networks = NetworkOptions(tower=tower.addresses, metrics=[named, "http://127.0.0.1:1"])
            with Console(options=ConsoleOptions(networks=networks)) as console:
                client = Client(console.url)
                producer.stdin.write("one\n")
                producer.stdin.flush()
                assert consumer.stderr.readline().startswith("metrics: ")

                def all_of_them():
                    nodes = client.get("/api/mesh")["nodes"]
                    rows = [client.get(f"/api/mesh/nodes/{one['address']}") for one in nodes]
                    return {row["kind"]: row for row in rows if row["metrics"]}

                found = until(all_of_them, lambda found: len(found) == 3)
                assert found["store"]["address"] == address and found["store"]["metrics_at"] == url
                until(all_of_them, lambda found: found["store"]["metrics"]["records_in"] == 1)
                assert found["producer"]["metrics"]["records_out"] == 1
                one, missing = client.get("/api/mesh/metrics")["servers"]
                assert one["metrics"]["partitions"] == 1
                assert missing["metrics"] is None and "refused" in missing["metrics_error"]


def test_a_broker_shows_its_own_mesh_once_it_has_joined(tmp_path):
    with TestBroker(console=True) as broker:
        client = Client(broker.console)
        broker.preload("orders", [b"x"] * 10)
        assert client.get("/api/networks")["mesh"] and client.get("/api/mesh") == {"connected": False}
        with Store(tmp_path / "one", tower=broker.tower) as store:
            mesh = until(
                lambda: client.get("/api/mesh", search="orders"),
                lambda mesh: mesh.get("partitions") and mesh["partitions"][0]["stores"],
            )
        row = mesh["partitions"][0]
        names = {one["address"]: one["name"] for one in mesh["nodes"]}
        assert names[row["led_by"]] == "this broker"
        assert store.address in names


def test_an_overlay_with_its_links_and_paths(shared):
    with (
        Endpoint(listen="127.0.0.1:0") as first,
        Endpoint(peers=[first.address]) as second,
        console_of(shared, overlay=[first.address]) as client,
    ):
        subscriber = second.subscribe("/news")
        found = until(
            lambda: client.get("/api/overlay"),
            lambda found: any("/news" in (one["wants"] or ()) for one in found["nodes"]),
        )
        assert found["links"] == [sorted([str(first.id), str(second.id)])]
        nodes = {one["id"]: one for one in found["nodes"]}
        assert nodes[str(first.id)]["direct"] and not nodes[str(second.id)]["direct"]
        assert nodes[str(second.id)]["paths"] == [[str(first.id), str(second.id)]]
        subscriber.close()


def test_zper_of_ones_own_broker_and_of_another(shared):
    with TestBroker(console=True, zper=ZperOptions()) as broker:
        zper = broker.zper
        with (
            Writer("flights", zper.writer_address) as writer,
            Reader("flights", zper.reader_address) as reader,
            console_of(shared, zper=[zper.controller_address, "tcp://127.0.0.1:1"]) as outside,
        ):
            writer.send(b"UA-1545", b"departed")
            writer.flush(SECONDS)
            assert next(iter(reader)).frames
            own = Client(broker.console).get("/api/zper")["own"]
            assert {(one["server"], one["topic"]) for one in own["clients"]} == {
                ("writer", "flights"),
                ("reader", "flights"),
            }
            assert own["metrics"]["zper_messages_in"] == 1 and not own["replicas"]
            one, missing = outside.get("/api/zper")["controllers"]
            assert one["nodes"][0]["state"] == "up" and one["error"] is None
            assert "no response" in missing["error"]


def test_the_overview_tells_what_came_and_went(local, shared):
    shared.create_topic("overview", 1)
    before = local.get("/api/rates")
    shared.preload("overview", [b"x"] * 1000)
    shared.records("overview")
    after = until(
        lambda: local.get("/api/rates"),
        lambda now: now["records_out"] - before["records_out"] >= 1000,
    )
    assert after["records_in"] - before["records_in"] == 1000
    assert after["octets_in"] > before["octets_in"] and after["octets_out"] > before["octets_out"]
    assert len(after["latencies"]["produce"]) == 2 and after["disk_left"] > 0
    assert after["connections"] is not None


def test_figures_a_broker_elsewhere_cannot_give_are_null(over_tcp):
    found = Client(over_tcp).get("/api/rates")
    names = ("records_in", "octets_in", "records_out", "octets_out", "connections", "latencies")
    assert all(found[name] is None for name in names)
    assert Client(over_tcp).get("/api/notices") == {"notices": []}


def test_lines_of_the_log_are_noticed(local):
    import logging

    logging.getLogger("dafka.broker.test").warning("the %s is on fire", "printer")
    logging.getLogger("dafka.broker.test").warning("the %s is on fire", "printer")
    (one,) = [one for one in local.get("/api/notices")["notices"] if "printer" in one["text"]]
    assert (one["text"], one["level"], one["times"]) == ("the printer is on fire", "warning", 2)


@pytest.mark.parametrize(
    "wrong",
    [{"overlay": "127.0.0.1:1"}, {"overlay": ["x"]}, {"zper": ["x:1"]}, {"tower": ("x", "y")}]
    + [
        {"metrics": [one]}
        for one in ("http://x", "https://x:1", "http://u@x:1", "http://x:65536", "http://x:1/y")
    ],
)
def test_malformed_addresses_are_refused(wrong):
    with pytest.raises(ValueError):
        NetworkOptions(**wrong)
