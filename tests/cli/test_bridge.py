"""``dafka bridge`` as a process, killed in the midst of its work."""

from __future__ import annotations

import math
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli.tools import refused, run, running
from click.testing import CliRunner
from kafka.errors import KafkaTimeoutError
from overlay.bridge import kafka
from ports import free_port
from security.certificates import Authority
from timing import ending_of

from compat.kafka import KafkaProducer
from dafka import Broker
from dafka.cli import bridge as command
from dafka.overlay import Endpoint, Event
from dafka.security import ServerTls

RECORDS = 6000
KILLS = 4
ANY = "127.0.0.1:0"


def started(process: subprocess.Popen[str]) -> str:
    """The address that a bridge listens on, from its first line."""
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.match(r"bridge: \S+ at (\S+),", line)
    assert found, line + ending_of(process)
    return found[1]


class Bridge:
    """A bridge that is killed and started again, at the same address."""

    def __init__(self, opened: ExitStack, *arguments: str) -> None:
        self._opened = opened
        self._arguments = arguments
        self.address = f"127.0.0.1:{free_port()}"
        self.start()

    def start(self) -> None:
        command = ("bridge", *self._arguments, "--listen", self.address)
        self.process = self._opened.enter_context(running(*command))
        assert started(self.process) == self.address

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


def test_a_bridge_logs_in_at_a_broker_with_accounts(tmp_path: Path) -> None:
    with ExitStack() as opened:
        authority = Authority(tmp_path)
        tls = ServerTls(**authority.sign("server")._asdict())
        secured = Broker(listen="SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", tls=tls)
        listeners = opened.enter_context(secured).listeners
        (tmp_path / "right").write_text("right\n")
        (tmp_path / "wrong").write_text("wrong\n")
        right = ["--password-file", str(tmp_path / "right"), "--bootstrap-server", listeners["PLAINTEXT"]]
        assert run("user", "add", "bridge", *right).returncode == 0
        login = ["--bootstrap-server", listeners["SASL_SSL"], "--security-protocol", "SASL_SSL"]
        login += ["--ssl-cafile", authority.cafile, "--sasl-username", "bridge"]
        login += ["--to-kafka", "/zeek/ 'zeek.{name}'"]
        wrong = ["--sasl-password-file", str(tmp_path / "wrong"), "--listen", ANY]  # with no timeout
        failed = run("bridge", *login, *wrong)
        assert failed.returncode and "SaslAuthenticationFailedError" in failed.stderr
        assert "Traceback" not in failed.stderr
        bridge = Bridge(opened, *login, "--sasl-password-file", str(tmp_path / "right"))
        zeek = opened.enter_context(Endpoint())
        assert zeek.peer(bridge.address, timeout=200)
        zeek.publish("/zeek/event", Event("ping", ("k",)))
        (record,) = kafka.read(listeners["PLAINTEXT"], "zeek.ping", 1)
        assert record.value == b'{"event":"ping","args":["k"]}'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to-kafka", "/zeek"], "a rule has a FROM and a TO"),
        (["--to-kafka", "/zeek t form=xml"], "json, binary, octets"),
        (["--to-kafka", "/zeek {offset}"], "there is no field 'offset'"),
        (["--to-overlay", "t /t key=x"], "'key' is not one of form"),
        (["--to-overlay", "t '/t"], "No closing quotation"),
        (["--site", "a.b"], "a dot would end the name"),
        ([], "nothing to do"),
        (["--share", "*"], "give site"),
        (["--sasl-username", "me"], "means nothing with PLAINTEXT: give --security-protocol SASL_PLAINTEXT"),
        (["--ssl-cafile", __file__], "--ssl-cafile means nothing with PLAINTEXT"),
        (
            ["--ssl-cafile", __file__, "--security-protocol", "SASL_PLAINTEXT"],
            "means nothing with SASL_PLAINTEXT",
        ),
    ],
)
def test_options_that_make_no_sense_are_answered_in_one_line(
    options: list[str], said: str, tmp_path: Path
) -> None:
    with Broker(tmp_path, listen=ANY) as broker:
        ended = refused("bridge", "--bootstrap-server", broker.bootstrap_servers, "--listen", ANY, *options)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(("options", "timeout"), [((), math.inf), (("--timeout", "3"), 3.0)])
def test_a_broker_is_waited_for_as_long_as_is_said_else_for_ever(
    options: tuple[str, ...], timeout: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float | None] = []

    def opened(*_: object, timeout: float | None, **__: object) -> None:
        given.append(timeout)
        raise KafkaTimeoutError("it is not there")

    monkeypatch.setattr(command, "Bridge", opened)
    arguments = ["--bootstrap-server", "127.0.0.1:2", "--site", "x", "--listen", ANY, *options]
    ended = CliRunner().invoke(command.bridge, arguments)
    assert "it is not there" in ended.output and given == [timeout]
    told = " ".join(CliRunner().invoke(command.bridge, ["--help"]).output.split())
    assert "Seconds to wait for the broker. [default: (for ever)" in told


def test_a_bridge_may_be_started_before_its_broker(tmp_path: Path) -> None:
    where = f"127.0.0.1:{free_port()}"
    with running("bridge", "--bootstrap-server", where, "--site", "x", "--listen", ANY) as process:
        assert process.stderr is not None
        assert "cannot be reached" in process.stderr.readline()
        with Broker(tmp_path, listen=where):
            assert started(process)


def test_a_bridge_that_waits_for_its_broker_ends_when_it_is_told_to() -> None:
    where = f"127.0.0.1:{free_port()}"
    with running("bridge", "--bootstrap-server", where, "--site", "x", "--listen", ANY) as process:
        assert process.stderr is not None
        assert "cannot be reached" in process.stderr.readline()
        process.terminate()
        process.wait(60)
