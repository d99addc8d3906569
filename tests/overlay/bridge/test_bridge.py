"""Bridges with real brokers and endpoints in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from overlay.bridge import kafka, rows

from dafka import Broker
from dafka.overlay import Endpoint, Event
from dafka.overlay.bridge.bridge import Bridge
from dafka.overlay.bridge.rules import ORIGIN, InvalidRule, ToKafka, ToOverlay
from dafka.overlay.values import Count, Enum
from dafka.overlay.wire.zeek import Batch, LogCreate, LogWrite


class Site(NamedTuple):
    broker: str
    endpoint: Endpoint


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def site(opened: ExitStack, tmp_path: Path) -> Callable[..., Site]:
    def make(name: str, *peers: Site) -> Site:
        broker = opened.enter_context(Broker(tmp_path / name))
        endpoint = opened.enter_context(Endpoint(listen="127.0.0.1:0"))
        for peer in peers:
            assert endpoint.peer(peer.endpoint.address, timeout=kafka.SECONDS)
        return Site(broker.bootstrap_servers, endpoint)

    return make


def wants(endpoint: Endpoint, prefix: str, there: Endpoint) -> None:
    """Wait until it is known there that an endpoint wants a topic: only then it is sent."""
    kafka.until(lambda: prefix in there.filters().get(endpoint.id, []), f"nobody wants {prefix}")


def test_events_of_zeek_become_records_that_are_one_object_each(
    opened: ExitStack, site: Callable[..., Site]
) -> None:
    here = site("here")
    zeek = opened.enter_context(Endpoint(peers=[here.endpoint.address]))
    rule = ToKafka("/zeek/", "zeek.{name}", key="{value[args][0]}")
    with Bridge(here.endpoint, here.broker, rules=[rule]):
        wants(here.endpoint, "/zeek/", zeek)
        for number in range(100):
            zeek.publish("/zeek/event", Event("ping", (f"host{number}", Count(number))))
        records = kafka.read(here.broker, "zeek.ping", 100)
    assert [json.loads(record.value) for record in records] == [
        {"event": "ping", "args": [f"host{number}", number]} for number in range(100)
    ]
    assert [record.key for record in records] == [b"host%d" % number for number in range(100)]


def test_logs_of_zeek_become_records_with_the_names_of_their_fields(
    opened: ExitStack, site: Callable[..., Site]
) -> None:
    here = site("here")
    zeek = opened.enter_context(Endpoint(peers=[here.endpoint.address]))
    fields = tuple((name, None, Count(7), Count(0), True) for name in rows.CONN_FIELDS)
    stream, writer = Enum("Conn::LOG"), Enum("Log::WRITER_ASCII")
    with Bridge(here.endpoint, here.broker, rules=[ToKafka("zeek/logs/", "zeek.{name}", key="{value[uid]}")]):
        wants(here.endpoint, "zeek/logs/", zeek)
        zeek.publish("zeek/logs/", LogCreate(stream, writer, None, fields))
        row = LogWrite(stream, writer, "conn", rows.text(rows.conn()))
        zeek.publish("zeek/logs/", Batch((row, row)))
        records = kafka.read(here.broker, "zeek.conn", 2)
    expected = {
        name: value
        for name, value in zip(rows.CONN_FIELDS, rows.CONN_VALUES, strict=True)
        if value is not None
    }
    assert [json.loads(record.value) for record in records] == [expected] * 2
    assert {record.key for record in records} == {expected["uid"].encode()}  # type: ignore[union-attr]


def test_events_that_rules_cannot_carry_are_counted_and_keep_nothing_back(
    opened: ExitStack, site: Callable[..., Site]
) -> None:
    here = site("here")
    other = opened.enter_context(Endpoint(peers=[here.endpoint.address]))
    with Bridge(here.endpoint, here.broker, rules=[ToKafka("/x", "t", form="octets")]) as bridge:
        wants(here.endpoint, "/x", other)
        other.publish("/x", Count(1))
        other.publish("/x", "good")
        assert [record.value for record in kafka.read(here.broker, "t", 1)] == [b"good"]
        assert bridge.discarded == {"value": 1}


def test_records_are_published_and_not_again_after_a_restart(
    opened: ExitStack, site: Callable[..., Site]
) -> None:
    here = site("here")
    other = opened.enter_context(Endpoint(peers=[here.endpoint.address]))
    messages = opened.enter_context(other.subscribe("/alerts/"))
    wants(other, "/alerts/", here.endpoint)
    rules = [ToOverlay("alerts", "/alerts/{key}", form="octets")]
    kafka.write(here.broker, "alerts", [b"%d" % number for number in range(50)], key=b"k")
    with Bridge(here.endpoint, here.broker, rules=rules):
        assert [messages.get(kafka.SECONDS).value for _ in range(50)] == [str(number) for number in range(50)]
    kafka.write(here.broker, "alerts", [b"new"], key=b"k")
    with Bridge(here.endpoint, here.broker, rules=rules):
        assert messages.get(kafka.SECONDS)[:2] == ("/alerts/k", "new")


def test_records_wait_until_there_is_a_peer(opened: ExitStack, site: Callable[..., Site]) -> None:
    here = site("here")
    kafka.write(here.broker, "alerts", [b"1"])
    with Bridge(here.endpoint, here.broker, rules=[ToOverlay("alerts", "/a")]):
        other = opened.enter_context(Endpoint())
        messages = opened.enter_context(other.subscribe("/a"))
        other.peer_nosync(here.endpoint.address)
        assert messages.get(kafka.SECONDS).value == 1


def test_rules_in_both_directions_at_two_sites_do_not_go_round(site: Callable[..., Site]) -> None:
    one = site("one")
    two = site("two", one)
    rules = [ToOverlay("t", "/t", form="octets"), ToKafka("/t", "t", form="octets")]
    with Bridge(one.endpoint, one.broker, rules=rules), Bridge(two.endpoint, two.broker, rules=rules):
        wants(one.endpoint, "/t", two.endpoint)
        wants(two.endpoint, "/t", one.endpoint)
        kafka.write(one.broker, "t", [b"from one"])
        assert kafka.read(two.broker, "t", 1)[0].value == b"from one"
        kafka.write(two.broker, "t", [b"from two", b"last"])
        found = kafka.read(one.broker, "t", 3)
    assert [record.value for record in found] == [b"from one", b"from two", b"last"]
    assert [dict(record.headers).get(ORIGIN) for record in found] == [None, b"/t", b"/t"]
    assert len(kafka.read(two.broker, "t", 3)) == 3


def test_three_sites_in_a_ring_share_topics_without_going_round(
    opened: ExitStack, site: Callable[..., Site]
) -> None:
    berlin = site("berlin")
    paris = site("paris", berlin)
    rome = site("rome", paris, berlin)
    sites = {"berlin": berlin, "paris": paris, "rome": rome}
    for name, one in sites.items():
        kafka.write(
            one.broker,
            "flights",
            [f"{name} {number}".encode() for number in range(200)],
            headers=[("h", b"x")],
        )
        opened.enter_context(Bridge(one.endpoint, one.broker, site=name, share=["*"]))
    for name, one in sites.items():
        for other in sites.keys() - {name}:
            records = kafka.read(one.broker, f"{other}.flights", 200)
            assert [record.value for record in records] == [
                f"{other} {number}".encode() for number in range(200)
            ]
            assert records[0].headers == [("h", b"x")]
    for one in sites.values():
        kafka.write(one.broker, "flights", [b"more"])
    for name, one in sites.items():
        for other in sites.keys() - {name}:
            assert kafka.read(one.broker, f"{other}.flights", 201)[-1].value == b"more"
    for name, one in sites.items():
        assert kafka.topics(one.broker) == {
            "flights",
            *(f"{other}.flights" for other in sites.keys() - {name}),
        }


def test_partitions_keys_and_times_are_the_same_at_the_other_site(
    opened: ExitStack, site: Callable[..., Site]
) -> None:
    from compat.kafka import KafkaAdminClient
    from compat.kafka.admin import NewTopic

    berlin = site("berlin")
    paris = site("paris", berlin)
    admin = KafkaAdminClient(bootstrap_servers=berlin.broker)
    admin.create_topics([NewTopic("t", 3, 1)])
    admin.close()
    for partition in range(3):
        kafka.write(
            berlin.broker,
            "t",
            [b"v"],
            key=b"k%d" % partition,
            partition=partition,
            timestamp_ms=1000 + partition,
        )
    for name, one in (("berlin", berlin), ("paris", paris)):
        opened.enter_context(Bridge(one.endpoint, one.broker, site=name, share=["t"]))
    records = kafka.read(paris.broker, "berlin.t", 3)
    found = sorted((record.partition, record.key, record.timestamp) for record in records)
    assert found == [(number, b"k%d" % number, 1000 + number) for number in range(3)]


def test_a_bridge_goes_on_where_it_was(opened: ExitStack, site: Callable[..., Site]) -> None:
    berlin = site("berlin")
    paris = site("paris", berlin)
    opened.enter_context(Bridge(berlin.endpoint, berlin.broker, site="berlin", share=["t"]))
    kafka.write(berlin.broker, "t", [b"1", b"2"])
    with Bridge(paris.endpoint, paris.broker, site="paris"):
        kafka.read(paris.broker, "berlin.t", 2)
    kafka.write(berlin.broker, "t", [b"3"])
    with Bridge(paris.endpoint, paris.broker, site="paris"):
        assert [record.value for record in kafka.read(paris.broker, "berlin.t", 3)] == [b"1", b"2", b"3"]


def test_a_bridge_goes_on_when_the_broker_of_the_process_is_started_again(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker").start()
    address = broker.bootstrap_servers
    with Endpoint("127.0.0.1:0") as sender, Endpoint(peers=[sender.address]) as endpoint:
        rules = [ToKafka("/t", "t"), ToOverlay("back", "/back")]
        try:
            with Bridge(endpoint, address, rules=rules), sender.subscribe("/back") as back:
                wants(endpoint, "/t", sender)
                sender.publish("/t", 1)
                kafka.read(address, "t", 1)
                broker.stop()
                sender.publish("/t", 2)
                broker.start()
                assert broker.bootstrap_servers == address
                sender.publish("/t", 3)
                assert {record.value for record in kafka.read(address, "t", 3)} == {b"1", b"2", b"3"}
                kafka.write(address, "back", [b"4"])
                assert back.get(timeout=kafka.SECONDS).value == 4
        finally:
            broker.stop()


def test_options_that_make_no_sense_are_refused() -> None:
    with Endpoint() as endpoint:
        with pytest.raises(InvalidRule, match="site"):
            Bridge(endpoint, "127.0.0.1:1", share=["*"])
        with pytest.raises(InvalidRule, match="nothing to do"):
            Bridge(endpoint, "127.0.0.1:1")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rules": [5]}, "rules is a list of ToKafka.*, and 5 is none"),
        ({"rules": 5}, "rules is a list"),
        ({"rules": [ToKafka]}, "rules is a list"),
        ({"rules": None, "site": "a"}, "rules is a list"),
        ({"site": "a", "share": [b"t"]}, "share is a list of names"),
        ({"site": "a", "share": None}, "share is a list of names"),
        ({"site": 5}, "site 5"),
        ({"site": "a", "name": 5}, "name is a text"),
    ],
)
def test_arguments_with_which_nothing_would_be_carried_are_refused(
    wrong: dict[str, Any], message: str
) -> None:
    with Endpoint() as endpoint, pytest.raises(InvalidRule, match=message):
        Bridge(endpoint, "127.0.0.1:1", timeout=0, **wrong)


def test_an_endpoint_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match=r"endpoint is a dafka\.overlay\.Endpoint, not None"):
        Bridge(None, "127.0.0.1:1", site="a")  # type: ignore[arg-type]
