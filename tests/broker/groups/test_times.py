"""The times at which groups lost their last member: written, read and corrected."""

from __future__ import annotations

import logging

import pytest
from broker.clients import Client
from timing import until

from dafka.broker.groups.times import GROUPS, OCCUPIED, GroupTimes
from dafka.log import LogWriteError


@pytest.fixture
def times(client: Client) -> GroupTimes:
    return GroupTimes(client.core.log, client.core._writer, lambda: 1000.0)


def row(client: Client) -> object:
    return client.connection.hub.run(client.core.log.table(GROUPS).get, "g")


def test_a_row_is_written_for_the_first_member_and_after_the_last_one(client, times):
    run = client.connection.hub.run
    run(times.note, "g", False)
    run(times.note, "g", True)
    run(times.note, "g", True)
    until(lambda: row(client) == OCCUPIED)
    assert times.is_occupied("g")
    run(times.note, "g", False)
    until(lambda: row(client) == 1_000_000)
    assert run(times.emptied, "g") == 1_000_000
    assert run(times.emptied, "other") is None


def test_the_time_of_members_lost_with_the_broker_begins_at_the_next_look(client, times):
    run = client.connection.hub.run
    run(times.note, "g", True)
    until(lambda: row(client) == OCCUPIED)
    later = GroupTimes(client.core.log, client.core._writer, lambda: 2000.0)
    assert not later.is_occupied("g")
    assert run(later.emptied, "g") == 2_000_000
    until(lambda: row(client) == 2_000_000)


def test_rows_of_groups_with_members_are_not_forgotten(client, times):
    run = client.connection.hub.run
    for group in "gh":
        run(times.note, group, True)
    run(times.note, "h", False)
    until(lambda: run(lambda: list(times)) == ["h"])
    run(times.forget, ["g", "h"])
    assert run(lambda: list(client.core.log.table(GROUPS))) == ["g"]


def test_a_failed_write_is_logged_and_the_group_continues(client, times, monkeypatch, caplog):
    def fail(*args: object) -> None:
        raise LogWriteError(client.core.log.path, "no space")

    run = client.connection.hub.run
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(client.core.log._storage, "commit", fail)
        run(times.note, "g", True)
        until(lambda: "'g'" in caplog.text)
    run(times.note, "g", False)
    until(lambda: row(client) == 1_000_000)
