"""Which stores are connected, told from subscriptions."""

from __future__ import annotations

from dafka.roles.known_stores import KnownStores

OURS, THEIRS, CONSUMER = b"5" * 32, b"6" * 32, b"C" * 32


def known(*prefixes: bytes) -> KnownStores:
    stores = KnownStores()
    for prefix in prefixes:
        stores.subscribed(prefix)
    return stores


def test_a_node_that_wants_hellos_for_itself_is_a_store_and_one_of_ours_if_it_hears_trimmed():
    for prefixes in ([b"W" + OURS, b"T" + OURS], [b"T" + OURS, b"W" + OURS]):
        stores = known(*prefixes, b"W" + THEIRS, b"T" + CONSUMER, b"M", b"W", b"W" + b"x" * 256)
        assert stores.present == {OURS, THEIRS}
        assert stores.ours == {OURS}


def test_a_store_that_takes_back_its_subscriptions_is_gone():
    stores = known(b"W" + OURS, b"T" + OURS)
    stores.unsubscribed(b"M" + OURS)
    assert stores.ours == {OURS}
    stores.unsubscribed(b"T" + OURS)
    assert (stores.present, stores.ours) == ({OURS}, set())
    stores.unsubscribed(b"W" + OURS)
    stores.unsubscribed(b"W" + OURS)
    assert stores.present == set()
