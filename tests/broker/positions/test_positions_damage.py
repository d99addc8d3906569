"""Positions where records were lost in a power cut, or are damaged."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker.clients import Client
from broker.damaged import LARGE, harm_last, power_cut
from broker.positions.configuring import create
from broker.positions.octets import Octets, produce, size
from protocol.material import assembled

from dafka import Broker
from dafka.broker.interface.positions import DamagedPositionError
from dafka.log import DamagedError
from dafka.protocol import raw

# -- a power cut --------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_records_with_the_offsets_of_lost_ones_get_their_own_positions(tmp_path: Path, kept: int) -> None:
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        for number in range(5):
            produce(client, [[b"%d" % number + LARGE]])
        assert octets.end == 5 * size([b"0" + LARGE])
    power_cut(tmp_path, kept)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        octets = Octets(client)
        # One offset is not given again even if nothing is left.
        assert octets.end == max(kept, 1) * size([b"0" + LARGE])
        produce(client, [[b"other"]])
        assert octets.all() == [*([b"%d" % number + LARGE] for number in range(kept)), [b"other"]]


# -- damage -------------------------------------------------------------------------------------


@pytest.fixture
def harmed(tmp_path: Path) -> Iterator[tuple[Path, list[list[bytes]]]]:
    """Five values of which the fourth is damaged; all were measured before."""
    messages = [[b"%d" % number + LARGE] for number in range(5)]
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        for message in messages[:4]:
            produce(client, [message])
        assert octets.end
    harm_last(tmp_path)
    with Broker(tmp_path) as broker:
        produce(Client(broker), [messages[4]])
    yield tmp_path, messages


def test_octets_behind_damage_keep_their_positions(harmed: tuple[Path, list[list[bytes]]]) -> None:
    folder, messages = harmed
    one = size(messages[0])
    with Broker(folder, on_damage="skip") as broker:
        client = Client(broker)
        octets = Octets(client)
        assert octets.end == 5 * one
        assert octets.read(0) == raw.encode_messages(messages[:3])
        damage = f"from position {3 * one} to {4 * one - 1} are damaged"
        with pytest.raises(DamagedPositionError, match=damage) as why:
            octets.read(3 * one)
        assert why.value.next == 4 * one
        assert octets.read(4 * one - 0) == raw.encode_messages(messages[4:])
        assert octets.call("messages", 2 * one, one) == ([messages[2]], 3 * one)
        assert octets.call("messages", 3 * one, 1 << 30) == ([messages[4]], 5 * one)
        assert [octets.call("position_of", offset) for offset in range(6)] == [
            0, one, 2 * one, 3 * one, 4 * one, 5 * one,
        ]  # fmt: skip
        assert octets.call("offset_of", 4 * one) == 4
        with pytest.raises(DamagedPositionError):
            octets.call("offset_of", 3 * one + 5)
        assert client.call("delete_records", {("t", 0): 3})["t", 0].error is None
        assert octets.first == 3 * one
        assert octets.call("messages", octets.first, 1 << 30) == ([messages[4]], 5 * one)


def test_with_a_damaged_front_positions_begin_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are found backwards from the next checkpoint, so in front of damage there are none."""
    for name in ("CHECKPOINT_OCTETS", "CHECKPOINT_BYTES"):
        monkeypatch.setattr(f"dafka.broker.positions.checkpoints.{name}", 1 << 40)
    messages = [[b"%d" % number + LARGE] for number in range(5)]
    one = size(messages[0])
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        for message in messages[:3]:
            produce(client, [message])
        assert octets.end == 3 * one
    harm_last(tmp_path)
    with Broker(tmp_path, on_damage="skip") as broker:
        client = Client(broker)
        octets = Octets(client)
        for message in messages[3:]:
            produce(client, [message])
        assert octets.end == 5 * one
        assert octets.first == 0
        assert client.call("delete_records", {("t", 0): 1})["t", 0].error is None
        assert octets.first == 3 * one
        assert octets.all() == messages[3:]


def test_damage_that_is_an_error_ends_reading_and_not_deleting(harmed: tuple[Path, Any]) -> None:
    folder, messages = harmed
    one = size(messages[0])
    with Broker(folder) as broker:
        client = Client(broker)
        octets = Octets(client)
        assert octets.end == 5 * one
        assert octets.read(0) == raw.encode_messages(messages[:3])
        with pytest.raises(DamagedError):
            octets.read(3 * one)
        assert octets.read(4 * one) == raw.encode_messages(messages[4:])
        assert client.call("delete_records", {("t", 0): 4})["t", 0].error is None
        assert octets.first == 4 * one
        assert octets.all() == [messages[4]]


def test_records_that_were_damaged_before_they_were_measured_have_no_octets(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        for number in range(3):
            produce(client, [[b"%d" % number + LARGE]])
    harm_last(tmp_path, 2)
    with Broker(tmp_path, on_damage="skip") as broker:
        client = Client(broker)
        octets = Octets(client)
        produce(client, [[b"behind"]])
        assert octets.all() == [[b"0" + LARGE], [b"behind"]]


def test_a_batch_that_nobody_can_read_has_no_octets(client: Client) -> None:
    """A client has compressed something else, and the broker took it, as it once did."""
    create(client)
    octets = Octets(client)
    produce(client, [[b"before"]])
    unreadable = assembled(gzip.compress(b"no records"), 5, attributes=1)
    assert client.call("produce", {("t", 0): [unreadable]}, trusted=True)["t", 0].error is None
    produce(client, [[b"behind"]])
    assert octets.all() == [[b"before"], [b"behind"]]
