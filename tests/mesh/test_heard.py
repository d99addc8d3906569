"""What remote peers are subscribed to."""

from __future__ import annotations

import time

from dafka.mesh import limits
from dafka.mesh.heard import HeardPrefixes


def test_a_topic_is_heard_by_whoever_subscribed_to_a_beginning_of_it():
    heard = HeardPrefixes()
    assert not heard.hears(b"Mhello")
    heard.add(b"Mhe")
    assert heard.hears(b"Mhello") and heard.hears(b"Mhe")
    assert not heard.hears(b"Mh") and not heard.hears(b"Hhello")
    heard.discard(b"Mhe")
    assert not heard.hears(b"Mhello")
    heard.discard(b"never there")
    heard.add(b"")
    assert heard.hears(b"anything")


def test_prefixes_are_found_by_their_id_octets():
    heard = HeardPrefixes()
    for prefix in (b"G", b"Gtopic", b"Laddress", b"Mhello", b""):
        heard.add(prefix)
    assert set(heard.with_ids(b"LG")) == {b"G", b"Gtopic", b"Laddress"}
    assert set(heard.with_ids(b"W")) == set()


def test_a_full_table_hears_everything_and_grows_no_more(monkeypatch):
    monkeypatch.setattr(limits, "HEARD_PREFIXES", 100)
    heard = HeardPrefixes()
    for number in range(1000):
        heard.add(b"M%d" % number)
    assert len(heard) == 100
    assert heard.hears(b"M999") and heard.hears(b"H")


def test_prefixes_that_match_no_topic_are_not_kept():
    heard = HeardPrefixes()
    heard.add(b"M" + b"x" * 300)
    assert len(heard) == 0


def test_asking_is_cheap_with_many_prefixes_of_all_lengths():
    heard = HeardPrefixes()
    for number in range(20_000):
        heard.add(b"M%0*d" % (1 + number % 255, number))
    topic = b"M" + b"y" * 255
    started = time.process_time()
    for _ in range(1000):
        heard.hears(topic)
    assert time.process_time() - started < 1.0  # some 20 microseconds each; a search of the table takes 1000
