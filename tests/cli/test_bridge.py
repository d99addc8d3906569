"""``dafka bridge`` as a process, killed in the midst of its work."""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli.tools import refused, running
from overlay.bridge import kafka

from compat.kafka import KafkaProducer
from dafka import Broker
from dafka.overlay import Endpoint, Event

RECORDS = 6000
KILLS = 4
ANY = "127.0.0.1:0"


def started(process: subprocess.Popen[str]) -> str:
    """The address that a bridge listens on, from its first line."""
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.match(r"bridge: \S+ at (\S+),", line)
    assert found, line + process.stderr.read()
    return found[1]


class Bridge:
    """A bridge that is killed and started again, at the same address."""

    def __init__(self, opened: ExitStack, *arguments: str) -> None:
        self._opened = opened
        self._arguments = arguments
        self.address = ANY
        self.start()

    def start(self) -> None:
        command = ("bridge", *self._arguments, "--listen", self.address)
        self.process = self._opened.enter_context(running(*command))
        self.address = started(self.process)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.mark.timeout(900)
def test_nothing_is_lost_though_bridges_are_killed_again_and_again(tmp_path: Path) -> None:
    with ExitStack() as opened:
        berlin = opened.enter_context(Broker(tmp_path / "berlin", listen=ANY)).bootstrap_servers
        paris = opened.enter_context(Broker(tmp_path / "paris", listen=ANY)).bootstrap_servers
        share = ("--site", "berlin", "--share", "flights", "--bootstrap-server", berlin)
        one = Bridge(opened, *share)
        take = ("--site", "paris", "--bootstrap-server", paris, "--peer", one.address)
        other = Bridge(opened, *take)
        producer = opened.enter_context(KafkaProducer(bootstrap_servers=berlin))
        for kill in range(KILLS):
            for number in range(kill * RECORDS // KILLS, (kill + 1) * RECORDS // KILLS):
                producer.send("flights", b"%d" % number)
            producer.flush()
            kafka.read(paris, "berlin.flights", kill * RECORDS // KILLS + 1, 200)
            killed = one if kill % 2 else other
            killed.kill()
            killed.start()
        values: list[int] = []

        def is_complete() -> bool:
            least = max(len(values) + 1, RECORDS)  # some come twice
            values[:] = [int(record.value) for record in kafka.read(paris, "berlin.flights", least, 200)]
            return len(set(values)) == RECORDS

        kafka.until(is_complete, "some records are missing", 200)
    firsts = list(dict.fromkeys(values))
    assert firsts == list(range(RECORDS)), "a record came for the first time behind a later one"


def test_rules_of_the_command_line(tmp_path: Path) -> None:
    with ExitStack() as opened:
        broker = opened.enter_context(Broker(tmp_path, listen=ANY)).bootstrap_servers
        rule = "/zeek/ 'zeek.{name}' key={value[args][0]} header.from={sender}"
        into = ("--to-kafka", rule, "--to-overlay", "alerts '/alerts/{key:none}' form=octets")
        bridge = Bridge(opened, *into, "--bootstrap-server", broker)
        zeek = opened.enter_context(Endpoint())
        alerts = opened.enter_context(zeek.subscribe("/alerts/"))
        assert zeek.peer(bridge.address, timeout=200)
        zeek.publish("/zeek/event", Event("ping", ("k",)))
        (record,) = kafka.read(broker, "zeek.ping", 1)
        assert (record.key, record.value) == (b"k", b'{"event":"ping","args":["k"]}')
        assert ("from", str(zeek.id).encode()) in record.headers
        kafka.write(broker, "alerts", [b"fire"])
        assert alerts.get(150)[:2] == ("/alerts/none", "fire")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to-kafka", "/zeek"], "a rule has a FROM and a TO"),
        (["--to-kafka", "/zeek t form=xml"], "json, binary, octets"),
        (["--to-kafka", "/zeek {offset}"], "there is no field 'offset'"),
        (["--to-overlay", "t /t key=x"], "'key' is none of form"),
        (["--to-overlay", "t '/t"], "No closing quotation"),
        (["--site", "a.b"], "a dot would end the name"),
        ([], "nothing to do"),
        (["--share", "*"], "give site"),
    ],
)
def test_what_makes_no_sense_is_answered_in_one_line(options: list[str], said: str, tmp_path: Path) -> None:
    with Broker(tmp_path, listen=ANY) as broker:
        ended = refused("bridge", "--bootstrap-server", broker.bootstrap_servers, "--listen", ANY, *options)
    assert ended.returncode != 0
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
