"""Since when a member has had what it has."""

from __future__ import annotations

import json
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from dafka.broker.groups.since import Since, epoch_of, is_part, lost, part_of, part_row, taken

SHARES = st.dictionaries(st.sampled_from("ab"), st.frozensets(st.integers(0, 5), min_size=1))


@given(st.lists(st.tuples(st.booleans(), SHARES), max_size=8))
def test_each_number_is_known_with_its_own_epoch(changes):
    since: Since[str] = {}
    model: dict[tuple[str, int], int] = {}
    for epoch, (takes, share) in enumerate(changes):
        if takes:
            fresh = {key: frozenset(n for n in some if (key, n) not in model) for key, some in share.items()}
            fresh = {key: some for key, some in fresh.items() if some}
            since = taken(since, fresh, epoch)
            model.update(((key, number), epoch) for key, some in fresh.items() for number in some)
        else:
            since = lost(since, share)
            for key, some in share.items():
                for number in some:
                    model.pop((key, number), None)
    for key in "ab":
        assert [epoch_of(since, key, n) for n in range(6)] == [model.get((key, n), inf) for n in range(6)]
    assert all(numbers for epochs in since.values() for numbers in epochs.values())
    for epochs in since.values():
        row = json.loads(json.dumps(part_row(epochs)))
        assert is_part(row) and part_of(row) == epochs


def test_equal_numbers_of_very_many_topics_take_one_object():
    fresh = {number: frozenset({0, number % 2}) for number in range(1000)}
    since = taken(taken({}, fresh, 3), {1000: frozenset({0})}, 4)
    assert len(since) == 1001 and epoch_of(since, 7, 1) == 3 and epoch_of(since, 1000, 0) == 4
    assert len({id(epochs) for epochs in since.values()}) == 3
