"""What an endpoint wants is bounded by what others take, and told where it is asked for."""

from __future__ import annotations

import pytest

from dafka.overlay import TooManyPrefixes, limits
from dafka.overlay.node.prefixes import Prefixes


def many(count, begin="/t"):
    return tuple(f"{begin}{number:05d}".encode() for number in range(count))


def test_prefixes_that_several_want_count_once_and_stay_until_the_last_one_leaves():
    wanted = Prefixes()
    wanted.replace("one", many(limits.MOST_PREFIXES))
    wanted.replace("other", many(limits.MOST_PREFIXES))
    wanted.replace("one", ())
    assert wanted.filter == many(limits.MOST_PREFIXES)
    wanted.replace("other", (b"/t", b"/u"))
    assert wanted.filter == (b"/t", b"/u")
    wanted.replace("other", ())
    assert wanted.filter == ()


def test_one_more_is_refused_and_nothing_is_changed():
    wanted = Prefixes()
    wanted.replace("one", many(limits.MOST_PREFIXES))
    with pytest.raises(TooManyPrefixes, match="5001 prefixes"):
        wanted.replace("other", (b"/other",))
    wanted.replace("one", (b"/one",))
    wanted.replace("other", (b"/other",))
    assert wanted.filter == (b"/one", b"/other")


def test_so_are_too_many_octets():
    wanted = Prefixes()
    wanted.replace("one", (bytes(limits.FILTER_OCTETS),))
    with pytest.raises(TooManyPrefixes, match="octets"):
        wanted.replace("other", (b"/",))


def test_a_subscriber_hears_of_it_at_the_call(make):
    endpoint = make()
    full = endpoint.subscribe(*many(limits.MOST_PREFIXES))
    for call in (endpoint.subscribe, endpoint.forward, full.add_topic):
        with pytest.raises(TooManyPrefixes):
            call("/one/more")
    assert len(full.topics) == limits.MOST_PREFIXES
    full.add_topic("/t")  # covers the others
    endpoint.subscribe("/one/more")


def test_as_many_prefixes_as_an_endpoint_may_have_reach_its_peers(two):
    listener, connector = two
    with listener.subscribe(*many(limits.MOST_PREFIXES)) as subscriber:
        last = many(limits.MOST_PREFIXES)[-1].decode()
        for _ in range(1000):
            connector.publish(last, 1)
            try:
                assert subscriber.get(timeout=0.02).value == 1
                return
            except TimeoutError:
                continue
        raise AssertionError("nobody heard of the prefixes")
