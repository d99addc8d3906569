"""``dafka overlay`` as a user starts it, around endpoints of this process."""

from __future__ import annotations

import json
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli.tools import refused, run, running

from dafka.overlay import Endpoint, Event
from dafka.overlay.values import Count
from dafka.overlay.wire.zeek import from_value

SECONDS = 150.0
PATIENT = ("--timeout", "150")  # the commands have time, too
ANY = "127.0.0.1:0"


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def hub(opened: ExitStack) -> Endpoint:
    return opened.enter_context(Endpoint(listen=ANY))


def ring(opened: ExitStack, count: int) -> list[Endpoint]:
    """Endpoints, each of which is peered with the one before; the first with the last."""
    endpoints = [opened.enter_context(Endpoint(listen=ANY)) for _ in range(count)]
    for number, endpoint in enumerate(endpoints):
        assert endpoint.peer(endpoints[number - 1].address, timeout=SECONDS)
    for endpoint in endpoints:
        for other in endpoints:
            assert endpoint is other or endpoint.await_peer(other.id, SECONDS)
    return endpoints


def after(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """The first line on standard error that matches."""
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(pattern, line)
        if found:
            return found
    raise AssertionError(f"no line with {pattern!r}")


def test_values_and_events_are_published(hub: Endpoint) -> None:
    with hub.subscribe("/t") as messages:
        values = ['{"a":1}', "2.5", '{"event":"ping","args":[1]}']
        ended = run("overlay", "publish", "/t/x", *values, "--peer", hub.address, *PATIENT)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert messages.get(SECONDS).value == {"a": 1}
        assert messages.get(SECONDS).value == 2.5
        assert from_value(messages.get(SECONDS).value) == Event("ping", (1,))
        run("overlay", "publish", "/t", "1", '"x"', "--event", "pong", "--peer", hub.address, *PATIENT)
        assert from_value(messages.get(SECONDS).value) == Event("pong", (1, "x"))
        run("overlay", "publish", "/t", "--form", "text", "--peer", hub.address, *PATIENT, stdin="one\ntwo\n")
        assert [messages.get(SECONDS).value for _ in range(2)] == ["one", "two"]


def test_a_publisher_waits_for_somebody_who_wants_it(hub: Endpoint) -> None:
    options = ("--wait", "--peer", hub.address)
    with running("overlay", "publish", "/t", "1", *options, *PATIENT) as process:
        statuses = hub.statuses()
        while not any(peer.status == "peered" for peer in hub.peers()):
            statuses.get(SECONDS)
        with hub.subscribe("/t") as messages:
            assert messages.get(SECONDS).value == 1
        assert process.wait(SECONDS) == 0
    nobody = run("overlay", "publish", "/t", "1", *options, "--timeout", "2")
    assert nobody.returncode == 1
    said = "Error: (nobody has subscribed to '/t'|no peering with|a peer has not told)"
    assert re.search(said, nobody.stderr)


def test_published_messages_are_printed(hub: Endpoint) -> None:
    with running("overlay", "subscribe", "/t", "--count", "2", "--listen", ANY) as process:
        hub.peer_nosync(after(process, r"listening: (\S+)")[1])
        statuses = hub.statuses()
        while not any(peer.status == "peered" for peer in hub.peers()):
            statuses.get(SECONDS)
        hub.publish("/t/1", (Count(1), None))
        hub.publish("/other", 0)
        hub.publish("/t/2", Event("ping", ("x",)))
        out, _ = process.communicate(timeout=SECONDS)
    assert [json.loads(line) for line in out.splitlines()] == [
        {"topic": "/t/1", "sender": str(hub.id), "value": [1, None]},
        {"topic": "/t/2", "sender": str(hub.id), "value": {"event": "ping", "args": ["x"]}},
    ]


def test_a_node_passes_on_what_others_publish(opened: ExitStack, hub: Endpoint) -> None:
    name = str(uuid.UUID(int=7))
    with running("overlay", "node", "--listen", ANY, "--peer", hub.address, "--id", name) as process:
        address = after(process, rf"node: {name} at (\S+)")[1]
        other = opened.enter_context(Endpoint(peers=[address]))
        messages = opened.enter_context(other.subscribe("/t"))
        assert hub.await_subscriber("/t", other.id, SECONDS)
        hub.publish("/t", "over the node")
        message = messages.get(SECONDS)
        assert (message.value, message.sender) == ("over the node", hub.id)


def test_peers_at_any_distance_are_listed(opened: ExitStack) -> None:
    endpoints = ring(opened, 4)
    ended = run("overlay", "peers", "--peer", endpoints[0].address, *PATIENT, "--json")
    found = {peer["id"]: peer for peer in map(json.loads, ended.stdout.splitlines())}
    assert set(found) == {str(endpoint.id) for endpoint in endpoints}
    assert found[str(endpoints[0].id)]["address"] == endpoints[0].address
    assert [found[str(endpoint.id)]["status"] for endpoint in endpoints] == ["peered"] + ["reachable"] * 3
    table = run("overlay", "peers", "--peer", endpoints[0].address, *PATIENT).stdout.splitlines()
    assert table[0].split() == ["peer", "address", "flags", "status"]
    assert len(table) == 5


def test_the_topology_has_every_link_also_those_between_others(opened: ExitStack, tmp_path: Path) -> None:
    endpoints = ring(opened, 5)
    opened.enter_context(endpoints[3].subscribe("/wanted"))
    picture = tmp_path / "ring.dot"
    options = ("--json", "--picture", str(picture), *PATIENT)
    ended = run("overlay", "topology", "--peer", endpoints[0].address, *options)
    shown = json.loads(ended.stdout)
    ids = [str(endpoint.id) for endpoint in endpoints]
    expected = {frozenset((ids[number], ids[number - 1])) for number in range(5)}
    assert {frozenset(link) for link in shown["links"]} == expected
    prefixes = {node["id"]: node["prefixes"] for node in shown["nodes"]}
    assert prefixes == {**{key: [] for key in ids}, ids[3]: ["/wanted"]}
    drawn = set(map(frozenset, re.findall(r'"([^"]+)" -- "([^"]+)"', picture.read_text())))
    assert drawn == expected


def test_peers_of_libbroker_are_asked_for_nothing(opened: ExitStack, hub: Endpoint) -> None:
    plain = opened.enter_context(Endpoint(peers=[hub.address], versions=(1, 1)))
    assert hub.await_peer(plain.id, SECONDS)
    began = time.monotonic()
    ended = run("overlay", "topology", "--peer", hub.address, "--json", *PATIENT)
    assert time.monotonic() - began < SECONDS
    shown = json.loads(ended.stdout)
    assert {node["id"]: node["prefixes"] for node in shown["nodes"]} == {str(hub.id): [], str(plain.id): None}
    assert [set(link) for link in shown["links"]] == [{str(hub.id), str(plain.id)}]


def test_the_topology_is_drawn(hub: Endpoint, tmp_path: Path) -> None:
    pytest.importorskip("networkx")
    pytest.importorskip("matplotlib")
    picture = tmp_path / "overlay.svg"
    ended = run("overlay", "topology", "--peer", hub.address, *PATIENT, "--picture", str(picture))
    assert ended.returncode == 0, ended.stderr
    assert str(hub.id) in ended.stdout
    assert "<svg" in picture.read_text()


def test_a_recording_is_replayed_with_as_many_deliveries(opened: ExitStack, tmp_path: Path) -> None:
    endpoints = ring(opened, 3)
    opened.enter_context(endpoints[1].subscribe("/a"))
    opened.enter_context(endpoints[2].subscribe("/a", "/b"))
    folder = tmp_path / "recording"
    options = ("--peer", endpoints[0].address, "--count", "30", *PATIENT)
    with running("overlay", "record", str(folder), *options) as process:
        after(process, "recording 3 peers")
        for number in range(10):
            endpoints[0].publish("/a/x", "y" * number)
            endpoints[1].publish("/b", number)
            endpoints[2].publish("/c", number)
        assert "recorded 30 messages" in process.communicate(timeout=SECONDS)[1]
    assert "yyyyy" not in (folder / "messages.csv").read_text(), "contents are not recorded"
    ended = run("overlay", "replay", str(folder), "--json", *PATIENT)
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert (result["nodes"], result["links"], result["published"]) == (3, 3, 30)
    assert result["delivered"] == result["expected"] == 2 * 10 + 10
    again = run("overlay", "record", str(folder), "--peer", endpoints[0].address, *PATIENT)
    assert "holds a recording already" in again.stderr


def test_a_store_is_read_and_changed_wherever_its_master_is(opened: ExitStack) -> None:
    endpoints = ring(opened, 3)
    master = opened.enter_context(endpoints[0].attach_master("inventory"))

    def store(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run("overlay", "store", "inventory", *arguments, "--peer", endpoints[2].address, *PATIENT)

    assert store("put", "apples", "3").returncode == 0
    assert store("increment", "apples", "2").returncode == 0
    assert store("get", "apples").stdout == "5\n"
    assert store("put-unique", "apples", "1").stderr == "Error: 'apples' is there already\n"
    store("put", "pears", '[1, "two"]')
    store("push", "pears", "null")
    assert store("index", "pears", "1").stdout == '"two"\n'
    assert json.loads(store("keys").stdout) == ["apples", "pears"]
    assert store("erase", "pears").returncode == 0
    assert store("exists", "pears").returncode == 1
    missing = store("get", "pears")
    assert (missing.returncode, "Traceback" in missing.stderr) == (1, False)
    for arguments in (("increment", "apples", "9" * 20), ("put", "apples", "1", "--expiry", "1e300")):
        refused = store(*arguments)
        assert refused.returncode in (1, 2) and "Error: " in refused.stderr
        assert "Traceback" not in refused.stderr
    assert master.get("apples") == 5


def test_changes_of_a_store_are_printed(opened: ExitStack, hub: Endpoint) -> None:
    master = opened.enter_context(hub.attach_master("s"))
    master.put("before", 1)
    with running("overlay", "store", "s", "events", "--peer", hub.address, *PATIENT) as process:
        statuses = hub.statuses()
        while not any(peer.status == "peered" for peer in hub.peers()):
            statuses.get(SECONDS)
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert (first["kind"], first["key"], first["value"]) == ("insert", "before", 1)
        master.put("before", 2)
        second = json.loads(process.stdout.readline())
        assert (second["kind"], second["value"], second["old"]) == ("update", 2, 1)


def test_a_recording_that_is_nested_too_deep_is_none(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("[" * 100_000)
    ended = refused("overlay", "replay", str(tmp_path))
    assert "is not a recording: it is nested more than 300 deep" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["publish", "/t", "1"], "give --peer HOST:PORT"),
        (["publish", "/t", "{", "--peer", "127.0.0.1:1"], "no JSON"),
        (["subscribe", "--peer", "nowhere"], "is not host:port"),
        (["node", "--listen", ANY, "--id", "me"], "is not a UUID"),
        (["peers", "--peer", "127.0.0.1:1", "--timeout", "0.3"], "no peering with 127.0.0.1:1 within 0.3 s"),
        (["topology", "--peer", "127.0.0.1:1", "--picture", "x.gif"], "a picture ends with"),
        (["replay", "."], ". is not a recording"),
        (["store", "s", "put", "k", "--peer", "127.0.0.1:1"], "put takes 2 ARGUMENTs, there are 1"),
        (["store", "s", "put", "k", "[" * 101 + "]" * 101, "--peer", "127.0.0.1:1"], "more than 100 deep"),
        (["store", "s", "put", "k", "[" * 9000 + "]" * 9000, "--peer", "127.0.0.1:1"], "more than 100 deep"),
        (["store", "s", "put", "k", "9" * 5000, "--peer", "127.0.0.1:1"], "does not fit 64 bits"),
        (["store", "s", "get", "k", "--expiry", "1", "--peer", "127.0.0.1:1"], "get has no --expiry"),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_options_that_make_no_sense_are_answered_in_one_line(arguments: list[str], said: str) -> None:
    ended = refused("overlay", *arguments)
    assert ended.returncode != 0
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_peers_talk_with_tls_if_both_want_it(opened: ExitStack) -> None:
    hub = opened.enter_context(Endpoint(listen=ANY, tls="anonymous"))
    messages = opened.enter_context(hub.subscribe("/t"))
    assert run("overlay", "publish", "/t", "1", "--peer", hub.address, *PATIENT, "--tls").returncode == 0
    assert messages.get(SECONDS).value == 1
    plain = run("overlay", "publish", "/t", "1", "--peer", hub.address, "--timeout", "0.5")
    assert "no peering" in plain.stderr
