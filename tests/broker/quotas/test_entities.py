"""Entities: which of Kafka's eight levels counts, and which entities a filter finds."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.broker.interface.quotas import Match, QuotaFilter
from dafka.broker.quotas.entities import Counting, InvalidEntityError, address, counting, entity, is_found

RATE, OTHER = "producer_byte_rate", "consumer_byte_rate"

# As Kafka's documentation lists them, with the names of those who share what is allowed.
LEVELS = [
    ((("user", "alice"), ("client-id", "c")), ("alice", "c")),
    ((("user", "alice"), ("client-id", None)), ("alice", "c")),
    ((("user", "alice"),), ("alice", None)),
    ((("user", None), ("client-id", "c")), ("alice", "c")),
    ((("user", None), ("client-id", None)), ("alice", "c")),
    ((("user", None),), ("alice", None)),
    ((("client-id", "c"),), (None, "c")),
    ((("client-id", None),), (None, "c")),
]
FOREIGN = [(("user", "bob"),), (("client-id", "d"),), (("user", "alice"), ("client-id", "d"))]


def test_the_first_level_that_has_the_key_counts():
    for present in product([False, True], repeat=len(LEVELS)):
        quotas = {one: {OTHER: 1.0} for one, _ in LEVELS} | {one: {RATE: 99.0} for one in FOREIGN}
        there = [level for level, has in enumerate(present) if has]
        for level in there:
            quotas[LEVELS[level][0]] = {RATE: 10.0 + level}
        expected = Counting(10.0 + there[0], LEVELS[there[0]][1]) if there else None
        assert counting(quotas, RATE, "alice", "c") == expected


def test_clients_are_told_apart_as_far_as_the_quota_tells_them_apart():
    quotas = {(("user", None),): {RATE: 1.0}, (("client-id", None),): {OTHER: 1.0}}
    shared = {
        (key, user, client): counting(quotas, key, user, client).shared
        for key, user, client in product([RATE, OTHER], ["alice", "bob"], ["c", "d"])
    }
    assert {shared[RATE, user, client] for user in ("alice", "bob") for client in "cd"} == {
        ("alice", None),
        ("bob", None),
    }
    assert {shared[OTHER, user, client] for user in ("alice", "bob") for client in "cd"} == {
        (None, "c"),
        (None, "d"),
    }


def test_an_entity_has_one_order_and_the_last_name_of_a_kind():
    assert entity([("client-id", None), ("user", "a")]) == (("user", "a"), ("client-id", None))
    assert entity([("user", "a"), ("user", "b")]) == (("user", "b"),)
    assert entity([("ip", "localhost")]) == (("ip", "localhost"),) and entity([("ip", None)])
    for wrong in (
        [],
        [("team", "a")],
        [("ip", "127.0.0.1"), ("user", "a")],
        [("ip", "")],
        [("user", "")],
        [("user", "é" * 128)],
    ):
        with pytest.raises(InvalidEntityError):
            entity(wrong)


def test_an_address_has_one_spelling():
    assert address("localhost") == address("LocalHost") == address("::ffff:127.0.0.1") == "127.0.0.1"
    assert address("0:0:0:0:0:0:0:1") == "::1"
    assert address("fe80::1%eth0") == address("FE80::1") == "fe80::1"
    assert address(None) == address("kafka.example.org") == ""


NAMES = st.sampled_from(["a", "b", None])
ENTITIES = st.dictionaries(st.sampled_from(["user", "client-id"]), NAMES, min_size=1)
FILTERS = st.dictionaries(
    st.sampled_from(["user", "client-id"]),
    st.one_of(
        st.tuples(st.just(Match.EXACT), st.sampled_from(["a", "b"])),
        st.tuples(st.sampled_from([Match.DEFAULT, Match.ANY]), st.none()),
    ),
)


@given(names=ENTITIES, conditions=FILTERS, strict=st.booleans())
def test_a_filter_finds_what_has_its_kinds_and_names(names, conditions, strict):
    filters = [QuotaFilter(kind, match, name) for kind, (match, name) in conditions.items()]
    expected = set(conditions) <= set(names) and not (strict and set(names) != set(conditions))
    for kind, (match, name) in conditions.items():
        if kind in names and match != Match.ANY and names[kind] != name:
            expected = False
    assert is_found(entity(list(names.items())), filters, strict) is expected
