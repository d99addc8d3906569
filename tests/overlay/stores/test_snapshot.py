"""A snapshot is the content as it was when it was begun, whatever changes while it is encoded."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from dafka.overlay.stores.content import Content
from dafka.overlay.stores.snapshot import Snapshot
from dafka.overlay.wire.commands import AckClone, Command, EncodedState, decode_command, encode_command
from dafka.overlay.wire.primitives import NO_ENTITY


def content_of(count: int) -> Content:
    content = Content("st")
    for number in range(count):
        content.put(number, str(number), None, NO_ENTITY)
    return content


def encoded(snapshot: Snapshot, between=lambda: None) -> EncodedState:
    for _ in range(1000):
        state = snapshot.step()
        if state is not None:
            return state
        between()
    pytest.fail("it does not end")


def entries(state: EncodedState) -> list[tuple[object, object]]:
    """The content as a clone decodes it."""
    command = Command(0, NO_ENTITY, NO_ENTITY, AckClone(1, 2, state))
    found = decode_command(encode_command(command)).content
    assert isinstance(found, AckClone) and isinstance(found.state, tuple)
    assert (found.offset, found.heartbeat_interval) == (1, 2)
    return sorted(found.state)


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_a_content_that_does_not_change_is_encoded_as_it_is(count):
    content = content_of(count)
    state = encoded(Snapshot(content))
    assert len(state) == count
    assert entries(state) == sorted(content)
    assert content.watcher is None


@pytest.mark.parametrize("seed", range(20))
def test_changes_meanwhile_are_not_in_it(seed):
    chance, content = random.Random(seed), content_of(1000)
    before = sorted(content)

    def change() -> None:
        for _ in range(30):
            key = chance.randrange(1500)
            if chance.random() < 0.5:
                content.put(key, "new", None, NO_ENTITY)
            else:
                content.erase(key, NO_ENTITY)

    state = encoded(Snapshot(content), change)
    assert sorted(content) != before
    assert entries(state) == before


def test_very_many_changes_meanwhile_are_encoded_in_pieces(monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.snapshot.SNAPSHOT_AT_ONCE", 10)
    content = content_of(500)
    before, snapshot = sorted(content), Snapshot(content)
    for number in range(500):
        content.erase(number, NO_ENTITY)
    sizes = list[int]()
    state = encoded(snapshot, lambda: sizes.append(len(snapshot._octets)))
    assert entries(state) == before
    steps = [after - one for one, after in pairwise(sizes)]
    assert 0 < max(steps) <= 10 * max(len(content_octets(entry)) for entry in before)


def content_octets(entry: tuple[object, object]) -> bytes:
    alone = Content("st")
    alone.put(*entry, None, NO_ENTITY)  # type: ignore[arg-type]
    return encoded(Snapshot(alone)).octets


@pytest.mark.parametrize(("most", "steps"), [(100, 65), (1000, 12), (5000, 4)])
def test_one_step_encodes_a_small_part_and_there_are_no_more_steps_than_that_takes(monkeypatch, most, steps):
    monkeypatch.setattr("dafka.overlay.stores.snapshot.SNAPSHOT_AT_ONCE", most)
    snapshot, counts = Snapshot(content_of(10_000)), [0]
    encoded(snapshot, lambda: counts.append(snapshot._count))
    a_part = 10_000 / 64
    assert max(after - before for before, after in pairwise(counts)) < most + 2 * a_part
    assert len(counts) <= steps
