"""The catalogue of faults: every kind belongs to a level and to calls that are counted."""

from __future__ import annotations

import pytest

from dafka.testing.torture.applying import NOT_WRITTEN, WRITTEN
from dafka.testing.torture.coordinated import OF_COORDINATOR
from dafka.testing.torture.deciding import WHOLE
from dafka.testing.torture.kinds import KINDS, LEVELS, OPERATIONS, kinds_of


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_of_a_level_meets_counted_calls_and_says_why_it_is_survived(name):
    kind = KINDS[name]
    assert kind.level in LEVELS and kind.does and kind.survived
    assert kind.operations and set(kind.operations) <= OPERATIONS.keys()
    assert set(kind.planned) <= set(kind.operations)


def test_every_kind_is_carried_out_somewhere():
    assert {
        *WHOLE,
        *NOT_WRITTEN,
        *WRITTEN,
        *OF_COORDINATOR,
        "empty",
        "evict",
        "rebalance",
        "slow_member",
    } == set(KINDS)


def test_all_errors_but_one_may_be_retried():
    errors = {**NOT_WRITTEN, **WRITTEN, **OF_COORDINATOR}
    assert [name for name, error in errors.items() if not error.retriable] == ["denied"]


def test_everything_is_all_levels_together():
    parts = [kinds_of(level) for level in ("network", "broker", "group")]
    assert set(kinds_of("everything")) == {"denied"}.union(*parts)
    assert sum(map(len, parts)) == len(KINDS) - 1


def test_another_level_is_refused():
    with pytest.raises(ValueError, match="'disk'"):
        kinds_of("disk")
