"""Consumers that keep their positions in a file."""

from __future__ import annotations

import json

import pytest

from dafka import Consumer, Producer, Store, Tower
from dafka.mesh.consumer import ConsumerClosedError, NoPositionFileError
from dafka.mesh.position_file import PositionFile, PositionFileError

PARTITION = "AB" * 16


@pytest.fixture
def path(tmp_path):
    return tmp_path / "positions.json"


@pytest.fixture
def tower(tmp_path):
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        yield tower


def consumer(tower, path, **more):
    return Consumer(["hello"], tower=tower, offset_reset="earliest", positions=path, **more)


def values(consumer, count):
    return [int(next(consumer).value) for _ in range(count)]


def send(producer, numbers):
    for number in numbers:
        producer.send(b"%d" % number)
    producer.flush(100)


def test_positions_are_those_that_were_written_last(path):
    file = PositionFile(path)
    assert file.positions == {}
    for sequence in (7, 9):
        file.write({PARTITION: sequence})
    file.close()
    again = PositionFile(path)
    assert again.positions == {PARTITION: 9}
    again.close()


def test_one_consumer_at_a_time_has_the_file(path):
    file = PositionFile(path)
    with pytest.raises(PositionFileError, match="another consumer keeps its positions"):
        PositionFile(path)
    file.close()
    PositionFile(path).close()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is not JSON"),
        ("\xe9", "is not JSON"),
        ("[" * 500 + "]" * 500, "is not JSON: it is nested more than 300 deep"),
        ("[]", "does not say that it has version 1"),
        ('{"version": 2, "positions": {}}', "does not say that it has version 1"),
        ('{"version": 1}', "has no positions"),
        ('{"version": 1, "positions": {"x": 1}}', "'x' is not a node address"),
        (json.dumps({"version": 1, "positions": {PARTITION: -1}}), "has the sequence -1 for partition ABAB"),
        (json.dumps({"version": 1, "positions": {PARTITION: True}}), "has the sequence True"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_an_invalid_file_is_refused_and_left_alone(path, content, why):
    path.write_text(content)
    for _ in range(2):
        with pytest.raises(PositionFileError, match=why):
            PositionFile(path)
    assert path.read_text() == content


def test_a_consumer_goes_on_behind_what_was_committed(tower, path):
    with Producer("hello", tower=tower) as producer:
        send(producer, range(10))
        with consumer(tower, path) as first:
            assert values(first, 3) == [0, 1, 2]
            first.commit()
            assert values(first, 2) == [3, 4]  # not committed
        with consumer(tower, path) as second:
            assert values(second, 7) == [3, 4, 5, 6, 7, 8, 9]
            second.commit()
        send(producer, [10])
        with consumer(tower, path) as third:
            assert [record.value for record in third.poll(100, 1)] == [b"10"]


def test_a_batch_that_is_handed_out_in_part_comes_again(tower, path):
    with Producer("hello", tower=tower, batch=True, linger=100) as producer:
        send(producer, range(3))
        send(producer, range(3, 6))
        with consumer(tower, path) as first:
            assert values(first, 4) == [0, 1, 2, 3]
            first.commit()
        with consumer(tower, path) as second:
            assert values(second, 3) == [3, 4, 5]
            second.commit()
        send(producer, [6])
        with consumer(tower, path) as third:
            assert values(third, 1) == [6]


def test_a_start_goes_before_the_file(tower, path):
    with Producer("hello", tower=tower) as producer:
        send(producer, range(5))
        with consumer(tower, path) as first:
            values(first, 4)
            first.commit()
        with consumer(tower, path, start={producer.address: 1}) as second:
            assert values(second, 1) == [1]


def test_commit_needs_a_file_and_an_open_consumer(tower, path):
    with Consumer(["hello"], tower=tower) as without, pytest.raises(NoPositionFileError, match="has no file"):
        without.commit()
    closed = consumer(tower, path)
    closed.close()
    with pytest.raises(ConsumerClosedError):
        closed.commit()
    consumer(tower, path).close()  # the file is free


def test_a_file_that_cannot_be_is_an_error_at_once(tower, tmp_path):
    with pytest.raises(FileNotFoundError):
        consumer(tower, tmp_path / "missing" / "positions.json")
