"""Opening somebody else's folder runs no code of theirs and touches no file outside of it."""

from __future__ import annotations

import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from log.messages import ADDRESS, batch, chunk_rows, database

from dafka import Broker
from dafka.cli import main
from dafka.log import DamagedError, Log, LogError, NotALogError
from dafka.log.verify import verify

BINARY, TEXT, PICKLE = 2, 3, 4  # diskcache's modes of values


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What there is if a payload has run."""
    return tmp_path / "ran"


@pytest.fixture
def payload(ran: Path) -> bytes:
    return pickle.dumps(Payload(ran))


@pytest.fixture
def filled(folder: Path) -> Path:
    """The folder of a log with records, a table value and a value in a file."""
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [batch(0, 1, 2)])], {("table", "key"): 1})
        log.write([(log.partition(b"large", ADDRESS), [bytes(200_000)])])
    return folder


def rows(folder: Path, statement: str, *arguments: object) -> None:
    with database(folder) as connection:
        connection.execute(statement, arguments)


def pickled_key(folder: Path, payload: bytes) -> None:
    rows(folder, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 0, 1, 1)", payload)


def pickled_values(folder: Path, payload: bytes) -> None:
    rows(
        folder, "UPDATE Cache SET mode = ?, value = ?, filename = NULL WHERE key != 'layout'", PICKLE, payload
    )


def pickled_files(folder: Path, payload: bytes) -> None:
    for path in (folder / "values").iterdir():
        path.write_bytes(payload)
    name = f"values/{path.name}"
    rows(
        folder,
        "UPDATE Cache SET mode = ?, filename = ?, size = ?, value = NULL WHERE key != 'layout'",
        PICKLE, name, len(payload),
    )  # fmt: skip


def pickled_layout(folder: Path, payload: bytes) -> None:
    rows(folder, "UPDATE Cache SET mode = ?, filename = NULL WHERE key = 'layout'", PICKLE)


WAYS = [pickled_key, pickled_values, pickled_files, pickled_layout]


def open_broker(folder: Path) -> None:
    with Broker(folder):
        pass


def read_all(folder: Path) -> None:
    with Log(folder) as log:
        log.table("table").get("key")
        for partition in log.partitions():
            log.read(partition, 0, count=9, max_bytes=2**40)


def dump(folder: Path) -> None:
    CliRunner().invoke(main, ["log", "dump", str(folder)])


def verify_all(folder: Path) -> None:
    CliRunner().invoke(main, ["log", "verify", str(folder)])


@pytest.mark.parametrize("use", [read_all, open_broker, dump, verify_all])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_unpickled(
    filled: Path,
    payload: bytes,
    ran: Path,
    way: Callable[[Path, bytes], None],
    use: Callable[[Path], None],
) -> None:
    way(filled, payload)
    try:
        use(filled)
    except LogError as error:
        assert isinstance(error, DamagedError)
    assert not ran.exists()


def test_the_payload_would_run(payload: bytes, ran: Path) -> None:
    pickle.loads(payload)
    assert ran.exists()


@pytest.mark.parametrize("way", WAYS[:3])
def test_pickled_values_are_reported_as_damage_with_their_place(
    filled: Path, payload: bytes, way: Callable[[Path, bytes], None]
) -> None:
    way(filled, payload)
    *_, seen = verify(filled)
    assert seen.damages
    if way is pickled_key:
        assert len(seen.damages) == 1
        assert "raw=0" in seen.damages[0][0]
        assert seen.messages == 2  # the good rows beside it were looked at
        with pytest.raises(DamagedError, match="raw=0"):
            Log(filled)
    else:
        with Log(filled) as log, pytest.raises(DamagedError, match=f"mode {PICKLE}"):
            log.read(log.partition(b"hello", ADDRESS), 0, count=1, max_bytes=1)


@pytest.mark.parametrize("mode", [BINARY, TEXT])
@pytest.mark.parametrize("name", ["../../secret", "/etc/hostname", "values/../../../secret", b"\0"])
def test_a_value_is_in_no_file_but_those_that_were_made_for_values(
    filled: Path, tmp_path: Path, mode: int, name: object
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(200_000))
    (row, _, _) = next(row for row in chunk_rows(filled) if row[2] is None)
    rows(filled, "UPDATE Cache SET mode = ?, filename = ? WHERE rowid = ?", mode, name, row)
    with Log(filled) as log:
        partition = log.partition(b"large", ADDRESS)
        with pytest.raises(DamagedError, match="sequences 0 to 0"):
            log.read(partition, 0, count=1, max_bytes=1)
        log.drop(partition)
        log.space.tidy()
        log.space.checkpoint()
    assert secret.exists()


def test_a_file_of_a_value_that_is_something_else_is_not_read(filled: Path, tmp_path: Path) -> None:
    with Log(filled) as log:
        log.write([(log.partition(b"later", ADDRESS), [bytes(200_000)])])
    row = next(row for row, _, value in chunk_rows(filled) if value is None)
    rows(filled, "UPDATE Cache SET store_time = 0 WHERE rowid = ?", row)  # no power cut has lost it
    with database(filled) as connection:
        ((name,),) = connection.execute("SELECT filename FROM Cache WHERE rowid = ?", (row,))
    path = filled / name
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    with Log(filled) as log, pytest.raises(LogError):
        log.read(log.partition(b"large", ADDRESS), 0, count=1, max_bytes=1)
    (tmp_path / "elsewhere").write_bytes(content)
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / "elsewhere")
    with Log(filled) as log, pytest.raises(LogError):
        log.read(log.partition(b"large", ADDRESS), 0, count=1, max_bytes=1)


@pytest.mark.parametrize("part", ["dafka.lock", "dafka.boot", "cache.db", "cache.db-wal", "values"])
def test_a_folder_whose_parts_are_links_to_others_is_refused_and_they_stay(
    filled: Path, tmp_path: Path, part: str
) -> None:
    target = tmp_path / "mine"
    if part == "values":
        target.mkdir()
        (target / ("0" * 32 + ".val")).write_text("mine")
    else:
        target.write_text("mine")
    path = filled / part
    if path.exists():
        path.rename(tmp_path / "away")
    path.symlink_to(target)
    with pytest.raises(NotALogError, match=f"{part} is a symbolic link"):
        Log(filled)
    with pytest.raises(NotALogError, match="symbolic link"):
        list(verify(filled))
    content = next(target.iterdir()) if part == "values" else target
    assert content.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_directory", "/"),
        ("sqlite_temp_store_directory", "here"),
        ("sqlite_cache_size", "1; DROP"),
        ("x", None),
    ],
)
def test_settings_that_no_log_has_are_damage(filled: Path, name: str, value: object) -> None:
    rows(filled, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", name, value)
    with pytest.raises(DamagedError, match=f"setting '{name}'"):
        Log(filled)
    *_, seen = verify(filled)
    assert [place for place, _ in seen.damages] == ["the database"]


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_new_folder_and_its_files_are_its_owner_s_alone(folder: Path, durability: str) -> None:
    before = os.umask(0)
    try:
        with Log(folder, durability=durability) as log:  # type: ignore[arg-type]
            log.write([(log.partition(b"large", ADDRESS), [bytes(200_000)])])
            found = modes(folder)
    finally:
        os.umask(before)
    folders = {"log", "values"}
    assert {"cache.db", "cache.db-wal", "dafka.lock"} < found.keys()
    assert {name: mode for name, mode in found.items() if mode != (0o700 if name in folders else 0o600)} == {}


def test_a_folder_with_other_rights_is_opened_and_keeps_them(filled: Path) -> None:
    for path in [filled, *filled.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    with Log(filled) as log:
        assert log.table("table").get("key") == 1
        assert len(log.partitions()) == 2
    assert modes(filled)["cache.db"] == 0o644
