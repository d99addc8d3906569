"""Broker's developer guide, "Cluster Setup and Testing": endpoints, what they publish, and their stores."""

from __future__ import annotations

from itertools import pairwise

import pytest
from overlay.wiring import Wiring, identity

from dafka.overlay.stores.content import Content
from dafka.overlay.stores.errors import StoreRefused
from dafka.overlay.stores.outputs import Answered
from dafka.overlay.values import Count, decode
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Put, PutUnique
from dafka.overlay.wire.envelope import (
    LOCAL,
    ROUTING_UPDATE,
    Envelope,
    decode_envelope,
    encode_envelope,
    read_filter,
)
from dafka.overlay.wire.primitives import NO_ENTITY, NOBODY, EntityId


def put(key, value) -> Put:
    return Put(key, value, None, NO_ENTITY)


def subscribe(wiring: Wiring, **filters: bytes) -> None:
    for name, prefix in filters.items():
        wiring.carry(name, wiring[name].subscribe([prefix]))


def contents(wiring: Wiring, names: str, key: str) -> list:
    stores = [wiring[name].stores["st"].content for name in names]
    return [store.get(key) if store.exists(key) else None for store in stores]


def test_the_guides_three_endpoints_with_stores():
    wiring = Wiring("a", "b", "c")
    wiring.carry("a", wiring["a"].attach_master("st"))
    for name in "bc":
        wiring.carry(name, wiring[name].attach_clone("st"))
    wiring.connect("b a", "c a", "b c")
    wiring.tick(2.0)
    for name in "abc":
        wiring.carry(name, wiring[name].write(wiring.now, "st", put(name, 1)))
    wiring.tick(1.0)
    for key in "abc":
        assert contents(wiring, "abc", key) == [1, 1, 1]
    assert all(wiring[name].stores["st"].is_idle for name in "abc")


def test_clones_are_any_number_of_hops_away():
    names = "abcdef"
    wiring = Wiring(*names)
    wiring.carry("a", wiring["a"].attach_master("st"))
    wiring.carry("f", wiring["f"].attach_clone("st"))
    wiring.connect(*[f"{one} {other}" for one, other in pairwise(names)])
    wiring.tick(1.0)
    wiring.carry("f", wiring["f"].write(wiring.now, "st", put("k", 7)))
    wiring.tick(1.0)
    assert contents(wiring, "af", "k") == [7, 7]
    caller = EntityId(identity("f"), 99)
    wiring.carry("f", wiring["f"].write(wiring.now, "st", PutUnique("u", 1, None, caller, 5, caller)))
    wiring.tick(1.0)
    assert [output.output for name, output in wiring.store if name == "f"][-1] == Answered(5, True)


def test_a_store_that_is_there_already_is_refused():
    wiring = Wiring("a", "b", "c").connect("a b", "b c")
    wiring.carry("a", wiring["a"].attach_master("st"))
    for name, code in (("c", ErrorCode.MASTER_EXISTS), ("a", ErrorCode.MASTER_EXISTS)):
        with pytest.raises(StoreRefused) as caught:
            wiring[name].attach_master("st")
        assert caught.value.code is code
    with pytest.raises(StoreRefused) as caught:
        wiring["a"].attach_clone("st")
    assert caught.value.code is ErrorCode.NO_SUCH_MASTER


def test_a_master_takes_the_content_it_is_given_also_an_empty_one():
    wiring = Wiring("a", "b")
    full = Content("other")
    full.put("k", 1, None, NO_ENTITY)
    for name, content in (("a", Content("st")), ("b", full)):
        wiring.carry(name, wiring[name].attach_master(content.name, content))
        assert wiring[name].stores[content.name].content is content


def test_a_store_that_is_detached_hears_nothing_more():
    wiring = Wiring("a", "b").connect("a b")
    wiring.carry("a", wiring["a"].attach_master("st"))
    wiring.carry("a", wiring["a"].detach("st"))
    wiring.carry("b", wiring["b"].attach_master("st"))
    assert wiring["b"].stores and not wiring["a"].stores


def test_nothing_for_stores_reaches_subscribers_and_octets_that_are_not_a_command_are_counted():
    wiring = Wiring("a", "b").connect("a b")
    subscribe(wiring, a=b"")
    wiring.carry("a", wiring["a"].attach_master("st"))
    wiring.carry("b", wiring["b"].attach_clone("st"))
    wiring.tick(1.0)
    assert wiring.got == []
    wiring.carry("b", wiring["b"].core.publish(b"st/<$>/data/master", b"garbage", 2))
    assert sum(wiring["a"].discarded.values()) == 1


def test_topics_of_local_events_are_neither_announced_nor_published():
    wiring = Wiring("a", "b").connect("a b")
    subscribe(wiring, a=LOCAL + b"data/statuses", b=b"")
    assert wiring["b"].core.peer.flooding.table.peers[identity("a")].filter == ()
    assert wiring.publish("a", LOCAL + b"data/statuses") == []


def test_peers_are_discovered_before_they_are_up_and_unreachable_after_they_are_down():
    wiring = Wiring("a", "b", "c").connect("a b", "b c")
    assert [what for name, what in wiring.heard if name == "a"] == [
        "Discovered b",
        "PeerUp b",
        "Discovered c",
    ]
    wiring.heard.clear()
    wiring.cut("a", "b")
    assert [what for name, what in wiring.heard if name == "a"] == [
        "PeerDown b",
        "Unreachable b",
        "Unreachable c",
    ]


def test_unpeer_ends_paths_at_once_and_the_connection_after_the_goodbye():
    wiring = Wiring("a", "b").connect("a b")
    subscribe(wiring, b=b"/t")
    wiring.heard.clear()
    wiring.carry("a", wiring["a"].unpeer(0.0, identity("b")))
    assert ("a", "PeerDown b") in wiring.heard and ("b", "PeerDown a") in wiring.heard
    assert wiring.publish("a", b"/t") == []


def test_a_node_that_shuts_down_leaves_the_others_their_other_paths():
    wiring = Wiring("a", "b", "c").connect("a b", "b c", "a c")
    subscribe(wiring, a=b"/t", c=b"/t")
    wiring.carry("b", wiring["b"].shut_down(0.0))
    assert wiring.publish("a", b"/t") == ["c"]
    assert wiring["b"].core.peer.peers == []


# -- peers of version 1 -----------------------------------------------------------------------------


def test_a_peer_of_version_1_and_this_node_get_what_they_subscribe_to():
    wiring = Wiring("a", "z", plain="z")
    subscribe(wiring, a=b"/a", z=b"/z")
    wiring.connect("a z")
    assert wiring.publish("a", b"/z/1") == ["z"] and wiring.publish("z", b"/a/1") == ["a"]
    assert wiring.publish("a", b"/other") == wiring.publish("z", b"/other") == []


def test_a_peer_of_version_1_is_told_a_changed_filter():
    wiring = Wiring("a", "z", plain="z").connect("a z")
    wiring.sent.clear()
    subscribe(wiring, a=b"/new")
    ((sender, octets),) = wiring.sent
    envelope = decode_envelope(octets[4:])
    assert (sender, envelope.kind, read_filter(envelope)) == ("a", ROUTING_UPDATE, (b"/new",))
    assert wiring.publish("z", b"/new") == ["a"]
    subscribe(wiring, a=b"/newer")
    assert wiring.publish("z", b"/new") == []


def test_a_message_for_somebody_else_is_not_taken():
    wiring = Wiring("a", "z", plain="z")
    subscribe(wiring, a=b"")
    wiring.connect("a z")
    for receiver, got in ((identity("x"), 0), (identity("a"), 1), (NOBODY, 2)):
        envelope = encode_envelope(Envelope(1, identity("z"), receiver, b"/t", b"\0"))
        wiring.carry("z", wiring["z"].core.peerings.send(identity("a"), envelope))
        assert len(wiring.got) == got
    assert decode(wiring.got[0][3]) is None


def test_a_store_is_shared_with_a_direct_peer_of_version_1():
    for master, clone in ("az", "za"):
        wiring = Wiring("a", "z", plain="z").connect("a z")
        wiring.carry(master, wiring[master].attach_master("st"))
        wiring.carry(clone, wiring[clone].attach_clone("st"))
        wiring.tick(1.0)
        wiring.carry(clone, wiring[clone].write(wiring.now, "st", put("k", Count(1))))
        wiring.tick(1.0)
        assert contents(wiring, "az", "k") == [1, 1]


def test_a_peer_of_version_1_is_not_sent_what_only_nodes_of_ours_understand():
    wiring = Wiring("a", "z", plain="z")
    subscribe(wiring, z=b"")
    wiring.carry("a", wiring["a"].attach_clone("st"))
    wiring.connect("a z")
    wiring.sent.clear()
    wiring.tick(1.0)
    topics = [decode_envelope(octets[4:]).topic for sender, octets in wiring.sent if sender == "a"]
    assert b"st/<$>/data/master" in topics and b"st/<$>/data/query" not in topics


@pytest.mark.parametrize("attach", ["attach_master", "attach_clone", "attach_proxy"])
def test_a_store_whose_topics_would_be_too_long_is_refused(attach):
    role = Wiring("a")["a"]
    with pytest.raises(StoreRefused, match="shorter name"):
        getattr(role, attach)("n" * 65_520)
    assert not role.stores
    getattr(role, attach)("n" * 65_519)
