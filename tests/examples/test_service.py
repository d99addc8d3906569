"""examples/service: the page as it is written, and the names that its rules and its dashboard use."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pytest
from cli.tools import LOOPBACK, address_of, produce, running
from disks import fill, small_disk
from documents.markdown import ROOT, Block, blocks
from documents.walking import Walk
from kafka import KafkaConsumer
from ports import free_port

from dafka.log.limits import RESERVE_BYTES

FOLDER = ROOT / "examples" / "service"
ADDRESSES = ("127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:9100")
STEPS = [one for one in blocks(FOLDER / "README.md") if any("step" in told for told in one.directives)]
_NAME = re.compile(r"\b((?:dafka|kafka)_\w+)")


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    for tool in ("curl", "openssl"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here")
    variables = {"DAFKA_KAFKA_BOOTSTRAP_SERVER": ADDRESSES[0]}
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("service")
        try:
            folder = stack.enter_context(small_disk(folder / "disk", 64))
            walk = _FullDisk(folder, ADDRESSES, variables)
        except pytest.skip.Exception:  # this user may mount none: the page is walked on a disk with room
            walk = Walk(tmp_path_factory.mktemp("roomy"), ADDRESSES, variables)
        yield from _walked(walk)


def _walked(walk: Walk) -> Iterator[Walk]:
    text = walk.here((FOLDER / "broker.toml").read_text())
    port = walk.here(ADDRESSES[2]).rpartition(":")[2]
    (walk.folder / "broker.toml").write_text(text.replace("metrics_port = 9100", f"metrics_port = {port}"))
    try:
        walk.printed = {one.text: walk.step(one) for one in STEPS}
        yield walk
    finally:
        walk.end()


class _FullDisk(Walk):
    """The disk is really full when the page comes to a disk that fills, until records were deleted."""

    def step(self, block: Block) -> str:
        if "topics empty" not in block.text:
            return super().step(block)
        filling = fill(self.folder, left=RESERVE_BYTES)
        produce = "echo 1001 | dafka kafka produce orders --timeout 2 --command-config shop.properties"
        refused = self.run(produce, status=1)
        full = "KafkaStorageError" in refused and "No space left on device" in refused
        assert full or "expired: 2.0 seconds have passed" in refused, refused  # on a slow machine
        said = super().step(block)
        filling.unlink()
        return said


def printed(walk: Walk, words: str) -> str:
    """What the step with these words has printed."""
    (found,) = [said for text, said in walk.printed.items() if words in text]
    return str(found)


def test_a_small_company_gets_what_the_page_says(walk: Walk) -> None:
    assert "retention_ms" in printed(walk, "openssl") or "listen" in walk.printed[STEPS[0].text]
    assert json.loads(printed(walk, "/health"))["ready"] is True
    assert len((walk.folder / "billed").read_text().splitlines()) == 400
    lags = re.findall(r"^kafka_consumergroup_lag{.*} (\d+)", printed(walk, "groups describe"), re.M)
    assert sum(map(int, lags)) <= 600
    assert "no damage" in printed(walk, "backup verify")
    assert "no damage" in printed(walk, "log verify restored")
    assert printed(walk, "| sort -n | tail -1").strip() == "1000"


def test_the_other_files_say_what_the_page_says() -> None:
    unit = (FOLDER / "dafka.service").read_text()
    assert "Type=notify" in unit and "--config /etc/dafka/broker.toml" in unit
    image = (FOLDER / "Containerfile").read_text()
    copied = {name for line in re.findall(r"^COPY (.*) /source", image, re.M) for name in line.split()}
    assert copied >= {"compat", "dafka", "pyproject.toml", "setup.cfg"}, "what an installation needs"
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    units = []
    for unit in sorted(FOLDER.glob("*.service")):
        text = unit.read_text().replace("/opt/dafka/bin/dafka", sys.executable)  # which is there
        (tmp_path / unit.name).write_text(text)
        units.append(str(tmp_path / unit.name))
    assert len(units) == 3
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=200)
    ours = [line for line in done.stderr.splitlines() if "dafka" in line]
    assert done.returncode == 0 and ours == [], done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here (package prometheus)")
def test_prometheus_understands_the_rules_and_the_questions_of_the_dashboard(tmp_path: Path) -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", str(FOLDER / "alerts.yml")],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0 and "7 rules found" in done.stdout, done.stdout + done.stderr
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = {"$topic": "orders", "$__rate_interval": "1m", "$__interval": "1m", "$__range": "1h"}
    rules = []
    for number, expression in enumerate(asked):
        for name, value in variables.items():
            expression = expression.replace(name, value)
        rules.append({"record": f"panel:{number}", "expr": expression})
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", str(tmp_path / "rules.yml")],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here (package prometheus)")
def test_alerts_are_raised_when_they_should_be_and_at_no_other_time(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "alerts.yml", tmp_path)
    shutil.copy(Path(__file__).with_name("alerts_test.yml"), tmp_path)
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "alerts_test.yml")],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tested = re.findall(r"alertname: (\w+)", (tmp_path / "alerts_test.yml").read_text())
    assert set(tested) == set(re.findall(r"alert: (\w+)", (FOLDER / "alerts.yml").read_text()))


@pytest.mark.parametrize("name", ["tower", "store"])
def test_units_of_a_mesh_start_what_there_is(name: str, tmp_path: Path) -> None:
    unit = (FOLDER / f"dafka-{name}.service").read_text()
    (command,) = re.findall(r"^ExecStart=/opt/dafka/bin/dafka (.*)$", unit, re.M)
    command = command.replace("storedb", str(tmp_path / "storedb"))
    for port in ("5556", "5557"):
        command = re.sub(rf"(\*|127\.0\.0\.1):{port}", f"127.0.0.1:{free_port()}", command)
    with running(*command.split()) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(f"{name}: ")


def test_rules_and_dashboard_use_names_that_a_broker_has(tmp_path: Path) -> None:
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data"), "--metrics-port", "0") as process:
        address = address_of(process)
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        produce(address, "orders", b"one")
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest"
        )
        next(consumer)
        consumer.close()
        with urlopen(url, timeout=200) as page:
            text = page.read().decode()
    if shutil.which("promtool"):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=200
        )
        assert done.returncode != 1, done.stderr  # 3 is advice about names, which are Kafka's
    known = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = re.findall(r"expr: (.*?)\n        for:", (FOLDER / "alerts.yml").read_text(), re.S)
    assert len(rules) == 7 and len(asked) > 12
    for expression in (*asked, *rules):
        for name in _NAME.findall(expression):
            assert name in known, expression
