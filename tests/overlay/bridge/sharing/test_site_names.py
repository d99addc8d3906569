from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.overlay.bridge.rules import InvalidRule
from dafka.overlay.bridge.sharing.site_names import check_site, may_take, name_here, shared


@pytest.mark.parametrize("site", ["", "a.b", "a/b", "ü", "x" * 101])
def test_a_site_has_a_name_that_can_stand_before_a_dot(site: str) -> None:
    with pytest.raises(InvalidRule):
        check_site(site)


def test_a_topic_stands_behind_its_site() -> None:
    assert name_here("berlin", "flights") == "berlin.flights"


def test_shared_is_what_matches_and_is_of_this_site() -> None:
    topics = ["flights", "flights.old", "paris.flights", "hotels", "__consumer_offsets"]
    assert shared(topics, ["flights*", "*.flights"], ["paris"]) == ["flights", "flights.old"]


def test_internal_topics_are_never_shared() -> None:
    assert shared(["__consumer_offsets", "a"], ["*"], []) == ["a"]


@pytest.mark.parametrize(
    ("site", "topic", "takes"),
    [
        ("paris", "flights", True),
        ("paris", "rome.flights", True),
        ("paris", "berlin.flights", False),
        ("paris", "rome.berlin.flights", False),
        ("paris", "flights.berlin", True),
        ("berlin", "flights", False),
        ("paris", "x" * 249, False),
    ],
)
def test_berlin_takes_no_topic_that_has_been_there(site: str, topic: str, takes: bool) -> None:
    assert may_take("berlin", site, topic) is takes


@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=2), min_size=1, max_size=5))
def test_nothing_goes_round_however_overlays_are_joined(overlays: list[set[str]]) -> None:
    """Sites that are in several overlays have a bridge in each, and all of them share everything."""
    topics = {site: {"t"} for site in "abcd"}
    for _ in range(100):
        before = {site: set(some) for site, some in topics.items()}
        for overlay in overlays:
            for source, target in itertools.permutations(sorted(overlay), 2):
                for topic in shared(before[source], ["*"], overlay - {source}):
                    if may_take(target, source, topic):
                        topics[target].add(name_here(source, topic))
        if topics == before:
            break
    assert topics == before, "topics are still being made"
    for site, names in topics.items():
        for name in names:
            path = [*name.split(".")[:-1], site]
            assert len(path) == len(set(path)), f"{name} at {site} has been somewhere twice"
