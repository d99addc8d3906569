"""Settings of a broker in a file of TOML: their values, and the message for each mistake."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli.tools import COMMANDS, refused

from dafka.cli.keys import settings

WHOLE = """\
# everything about this broker
[broker]
listen = ["PLAINTEXT://127.0.0.1:9092", "SASL_PLAINTEXT://127.0.0.1:9094"]
sasl_mechanisms = ["SCRAM-SHA-256"]
data = "records"
default-partitions = 3
auto_create_topics = false
retention_ms = 604_800_000
offsets_retention = 1.5
durability = "power"
metrics_port = 9100
group_settings = "group.consumer.session.timeout.ms=50000"

[store]
folder = "another command"
"""


def check(tmp_path: Path, text: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "broker.toml"
    file.write_text(text)
    return refused("broker", "--config", str(file), "--check", *arguments, **more)


def shown(said: str) -> dict[str, tuple[str, str]]:
    """Value and origin of each setting."""
    rows = [line.split() for line in said.splitlines()[1:]]
    return {row[0]: (row[1], " ".join(row[2:])) for row in rows}


def test_everything_in_a_file_is_checked_and_shown_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = check(tmp_path, WHOLE)
    assert done.returncode == 0, done.stderr
    found = shown(done.stdout)
    assert found["listen"] == ("PLAINTEXT://127.0.0.1:9092,SASL_PLAINTEXT://127.0.0.1:9094", "file")
    assert found["auto_create_topics"] == ("no", "file")
    assert found["retention_ms"] == ("604800000", "file")
    assert found["group_settings"] == ("group.consumer.session.timeout.ms=50000", "file")
    assert found["on_damage"] == ("raise", "default")
    assert [path.name for path in tmp_path.iterdir()] == ["broker.toml"]


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    text = "[broker]\nretention_ms = 1\nretention_bytes = 1\ndefault_partitions = 1\n"
    environment = {"DAFKA_BROKER_RETENTION_MS": "2", "DAFKA_BROKER_RETENTION_BYTES": "2"}
    found = shown(check(tmp_path, text, "--retention-ms", "3", **environment).stdout)
    assert found["retention_ms"] == ("3", "command line")
    assert found["retention_bytes"] == ("2", "environment")
    assert found["default_partitions"] == ("1", "file")


def test_every_option_of_a_broker_can_be_set_in_a_file(tmp_path: Path) -> None:
    """For any value: no name is unknown."""
    names = [str(one.parameter.name) for one in settings(COMMANDS["broker"], ("broker",))]
    for name in set(names) - {"config", "check"}:
        assert "is not a setting" not in check(tmp_path, f"[broker]\n{name} = 'x'\n").stderr, name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[broker]\nretention_msec = 5", "line 2: broker.retention_msec is not a setting (the nearest"),
        ("\n[borker]\nx = 1", "line 2: [borker] belongs to no command (the nearest known one is 'broker')"),
        ("listen = 'x'", "line 1: 'listen' stands in no table: write it below [broker]"),
        ("[broker]\n\nretention_ms = 'week'", "line 3: broker.retention_ms is a number, not 'week'"),
        ("[broker]\nretention_ms = [1, 2]", "line 2: broker.retention_ms is one number, not a list"),
        ("[broker]\nretention_ms = -2", "line 2: broker.retention_ms: -2 is not in the range"),
        ("[broker]\nretention_ms = true", "line 2: broker.retention_ms cannot be True"),
        ("[broker]\nretention_ms = 1.5", "line 2: broker.retention_ms: '1.5' is not a valid integer"),
        ("[broker]\nauto_create_topics = 'no'", "line 2: broker.auto_create_topics is true or false"),
        ("[broker]\ndurability = 'always'", "line 2: broker.durability: 'always' is not one of"),
        ("[broker]\nlisten = 5", "line 2: broker.listen: listen is 'HOST:PORT' with a port"),
        ("[broker]\nlisten = ['SSL://a:1', 'b:2']", "line 2: broker.listen: listen='SSL://a:1,b:2': each of"),
        ("[broker]\nadvertised = '*'", "line 2: broker.advertised: advertised='*' is not an address that"),
        ("[broker]\nadvertised = 'FTP://a:1'", "line 2: broker.advertised: advertised='FTP://a:1': 'FTP' is"),
        ("[broker]\nsasl_mechanisms = ['PLANE']", "line 2: broker.sasl_mechanisms: 'PLANE' is not one"),
        ("[broker]\nsasl_max_session = 1e30", "line 2: broker.sasl_max_session: 1e+30 is not in the range"),
        ("[broker]\nconsole = 5", "line 2: broker.console: the console: listen='5' is not HOST:PORT"),
        ("[broker]\nschema_registry = 'x'", "line 2: broker.schema_registry: the address of a"),
        ("[broker]\noffsets_retention = -5", "line 2: broker.offsets_retention: offsets_retention is"),
        ("[broker]\noffsets_retention = nan", "line 2: broker.offsets_retention: nan is not a number"),
        ("[broker]\nretention_check_interval = 1e30", "line 2: broker.retention_check_interval: 1e+30 is"),
        ("[broker]\ndefault_partitions = 1000000", "line 2: broker.default_partitions: 1000000 is not in"),
        ("[broker]\ndata = ''", "line 2: broker.data: a folder has a name"),
        ("[broker]\ndata = 2026-01-01", "line 2: broker.data cannot be datetime.date(2026, 1, 1)"),
        ("[broker.tls]\ncertfile = 'x'", "line 1: broker.tls is not a setting"),
        ("[broker]\ndata = 'a'\ndata = 'b'", "line 3: broker.data is there twice"),
        ("[broker]\nlog-format = 'text'\nlog_format = 'json'", "broker.log_format is there twice"),
        ("[broker", "Expected ']' at the end of a table declaration"),
        ("[broker]\nx = \ny = 1", "line 2"),
        ("[[broker]]\nx = 1", "'broker' stands in no table"),
        ('[broker]\ndata = "a\\u0000b"', "line 2: broker.data: "),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    done = check(tmp_path, text)
    assert done.returncode == 2
    assert words in done.stderr and "broker.toml" in done.stderr


@pytest.mark.parametrize("value", ["{a = 'hunter2'}", "['hunter2', true]", "2026-11-23", "true"])
def test_no_mistake_shows_a_password(tmp_path: Path, value: str) -> None:
    done = check(tmp_path, f"[broker]\nssl_password = {value}\n")
    assert done.returncode == 2 and "line 2: broker.ssl_password cannot be that kind" in done.stderr
    assert "hunter2" not in done.stderr


def test_all_mistakes_are_told_at_once_in_their_order(tmp_path: Path) -> None:
    said = check(tmp_path, "[broker]\nx = 1\ny = 2\nretention_ms = 'z'\n[nothing]\n").stderr
    assert [word for word in ("broker.x", "broker.y", "broker.retention_ms", "[nothing]") if word in said]
    assert said.index("broker.x") < said.index("broker.y") < said.index("broker.retention_ms")


@pytest.mark.parametrize(
    "nested", ["listen = " + "[" * 5000, "listen" + ".a" * 5000 + " = 1"], ids=["list", "key"]
)
def test_a_file_that_is_nested_too_deeply_is_one_line(tmp_path: Path, nested: str) -> None:
    said = check(tmp_path, "[broker]\n" + nested).stderr
    error = said.splitlines()[-1]  # some versions of Python can show so deep a table, in part
    assert "lists or tables are nested too deeply" in error or "broker.listen cannot be {" in error
    assert "Traceback" not in said and len(error) < 1000


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_bytes(b"\xff\xfe")
    done = refused("broker", "--config", str(file), "--check")
    assert done.returncode == 2 and "it is not UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listen = 'SSL://127.0.0.1:9093'", "needs tls"),
        ("listen = '127.0.0.1'", "127.0.0.1"),
        ("listen = '0.0.0.0:9092'", "advertised"),
        ("listen = 'SSL://127.0.0.1:9093'\nssl_certfile = 'nothing.pem'", "nothing.pem"),
        ("keys = 'nothing'", "nothing"),
        ("data = 'a_file'", "is a file"),
        ("data = 'foreign'", "is not a log"),
        ("sub = 'tcp://127.0.0.1:5556'", "give both or none"),
        ("group_settings = 'group.nothing=1'", "group.nothing"),
    ],
)
def test_settings_a_broker_would_refuse_are_refused_by_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").touch()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine").touch()
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = check(tmp_path, f"[broker]\n{text}\n")
    assert done.returncode in (1, 2) and words in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*") if path.name != "broker.toml") == before


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("sub = 'tcp://a:1'", "line 3: broker.sub"),
        ("sub = 'tcp://a:1,tcp://b:2'\npub = 'tcp://a:1'", "line 3: broker.sub; line 4: broker.pub"),
        ("retention_ms = 1\nconsole-tls = true", "line 4: broker.console_tls"),
        ("listen = 'SSL://127.0.0.1:9093'", "line 3: broker.listen"),
        ("sasl_mechanisms = 'PLAIN'", "line 3: broker.sasl_mechanisms"),
        ("schema_registry_user = 'a'", "line 3: broker.schema_registry_user"),
    ],
)
def test_settings_that_contradict_each_other_are_named_with_their_lines(
    tmp_path: Path, text: str, lines: str
) -> None:
    done = check(tmp_path, f"[broker]\n\n{text}\n")
    assert done.returncode in (1, 2) and f"broker.toml, {lines})\n" in done.stderr, done.stderr


def test_a_setting_that_the_command_line_overrides_has_no_line(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("[broker]\nlisten = '127.0.0.1:0'\n")
    done = refused("broker", "--config", str(file), "--listen", "SSL://127.0.0.1:0", "--check")
    assert "listen='SSL://127.0.0.1:0'" in done.stderr and "line" not in done.stderr
