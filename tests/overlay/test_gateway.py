"""Nodes of libbroker appear in the overlay as peers behind the nodes that they are connected to."""

from __future__ import annotations

import pytest
from overlay.wiring import Wiring, identity

from dafka.overlay.limits import CHECKED_OCTETS, GOODBYE_SECONDS, MOST_TOLD, SETTLE_SECONDS
from dafka.overlay.role import StoreRefused
from dafka.overlay.stores.content import Content
from dafka.overlay.values import Count, encode
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Put
from dafka.overlay.wire.envelope import (
    COMMAND,
    DATA,
    ROUTING_UPDATE,
    Envelope,
    decode_envelope,
    encode_envelope,
)
from dafka.overlay.wire.primitives import NO_ENTITY, NOBODY

EVENT = encode((Count(1), Count(1), ("ping", (Count(7),))))
PLAIN = encode(Count(7))


def overlay(*names: str, libbroker: str = "", plain: str = "", links: str, **filters: str) -> Wiring:
    """Links that are all up, and all speakers are found."""
    wiring = Wiring(*names, libbroker=libbroker, plain=plain)
    subscribe(wiring, **filters)
    wiring.connect(*links.split(", "))
    wiring.tick(SETTLE_SECONDS + 0.5)
    return wiring


def subscribe(wiring: Wiring, **filters: str) -> None:
    for name, prefixes in filters.items():
        wiring.carry(name, wiring[name].subscribe(prefixes.encode().split()))


def publish(wiring: Wiring, name: str, topic: bytes = b"/t", payload: bytes = EVENT) -> list[str]:
    """The receivers, in alphabetical order, each time."""
    before = len(wiring.got)
    wiring.carry(name, wiring[name].publish(topic, payload))
    return sorted(one for one, *_ in wiring.got[before:])


def test_libbroker_hears_its_topics_from_any_node_and_reaches_all_subscribers():
    wiring = overlay("a", "b", "c", libbroker="x", links="a b, b c, x c", a="/t", b="/u", c="/t", x="/t")
    assert publish(wiring, "a") == ["c", "x"]
    assert publish(wiring, "x") == ["a", "c"]
    assert publish(wiring, "x", b"/u") == ["b"]
    assert publish(wiring, "b", b"/u") == []


def test_subscribers_are_told_who_published():
    wiring = overlay("a", "b", libbroker="x", links="a b, b x", a="/t")
    publish(wiring, "x")
    assert wiring.got == [("a", "x", b"/t", EVENT)]


def test_it_is_discovered_by_all_nodes_and_unreachable_when_its_last_connection_goes():
    wiring = overlay("a", "b", "c", libbroker="x", links="a b, b c, x b, x c")
    assert sorted(who for who, what in wiring.heard if what == "Discovered x") == ["a", "b", "c"]
    assert identity("x") in wiring["a"].core.peer.peers
    wiring.cut("x", "b")
    assert not [who for who, what in wiring.heard if what == "Unreachable x"]
    wiring.cut("x", "c")
    assert sorted(who for who, what in wiring.heard if what == "Unreachable x") == ["a", "b", "c"]
    assert identity("x") not in wiring["a"].core.peer.peers


def test_it_is_told_what_the_others_want_and_not_what_it_wants_itself():
    wiring = overlay("a", "b", libbroker="x y", links="a b, x a, y b", a="/a", b="/b", x="/x", y="/y")
    told = wiring["x"].filters
    assert told == {identity("a"): (b"/a", b"/b", b"/y")}
    subscribe(wiring, b="/new")
    wiring.tick(0.2)
    assert told == {identity("a"): (b"/a", b"/new", b"/y")}
    wiring.cut("a", "b")
    wiring.tick(0.2)
    assert told == {identity("a"): (b"/a",)}


def test_a_long_list_of_prefixes_becomes_a_subscription_to_everything():
    wiring = overlay("a", "b", libbroker="x", links="a b, x a")
    many = [b"/%d/" % number for number in range(MOST_TOLD + 1)]
    wiring.carry("a", wiring["a"].subscribe(many[:-1]))
    assert len(wiring["x"].filters[identity("a")]) == MOST_TOLD
    wiring.carry("b", wiring["b"].subscribe(many[-1:]))
    wiring.tick(0.2)
    assert wiring["x"].filters == {identity("a"): (b"",)}
    assert publish(wiring, "x", b"/1/") == ["a"] and publish(wiring, "x", many[-1]) == ["b"]
    assert publish(wiring, "x", b"nobody's") == []


# -- one of several nodes speaks for it -----------------------------------------------------------------


def triangle(**filters: str) -> Wiring:
    """x is connected to two nodes of three, which are connected with each other."""
    return overlay("a", "b", "c", libbroker="x", links="a b, b c, a c, x c, x b", **filters)


def test_the_node_with_the_smallest_id_speaks_for_libbroker():
    wiring = triangle(a="/t", b="/t", c="/t", x="/t")
    assert wiring["x"].filters == {identity("b"): (b"/t",), identity("c"): ()}
    for name in "abcx":
        assert publish(wiring, name) == sorted({*"abcx"} - {name})


@pytest.mark.parametrize("goes", ["connection", "node"])
def test_another_one_speaks_when_it_goes(goes):
    wiring = triangle(a="/t", b="/t", c="/t", x="/t")
    wiring.cut("x", "b")
    if goes == "node":
        wiring.cut("a", "b")
        wiring.cut("c", "b")
    wiring.tick(0.2)
    assert wiring["x"].filters == {identity("c"): (b"/t",)}
    others = {*"acx"} if goes == "node" else {*"abcx"}
    for name in others:
        assert publish(wiring, name) == sorted(others - {name})


def test_a_node_with_neighbours_waits_before_it_speaks_and_one_without_does_not():
    wiring = Wiring("a", "b", libbroker="x y")
    subscribe(wiring, a="/t", b="/t")
    wiring.connect("x a")
    assert wiring["x"].filters == {identity("a"): (b"/t",)}
    wiring.connect("a b", "y b")
    assert wiring["y"].filters == {identity("b"): ()}
    wiring.tick(SETTLE_SECONDS + 0.2)
    assert wiring["y"].filters == {identity("b"): (b"/t",)}


def test_messages_at_a_node_that_does_not_speak_for_libbroker_are_dropped():
    wiring = triangle(c="/t")
    wiring["x"].filters[identity("c")] = (b"/t",)  # it has not heard yet
    assert publish(wiring, "x") == ["c"]
    assert wiring["c"].core.gateway.discarded == {"spoken-for": 1}


def test_nodes_that_do_not_reach_each_other_both_speak_and_nothing_goes_round_when_they_meet():
    wiring = overlay("a", "b", libbroker="x", links="x a, x b", a="/t", b="/t", x="/t")
    assert publish(wiring, "x") == ["a", "b"]
    wiring.connect("a b")
    assert publish(wiring, "a") == ["b", "x"]  # x passes it on to b, which knows it by its mark
    assert wiring["b"].core.gateway.discarded["echo"] <= 1
    wiring.tick(1.0)
    assert publish(wiring, "x") == ["a", "b"]


# -- libbroker nodes that are connected with each other --------------------------------------------------


def test_a_tree_of_libbroker_nodes_behind_a_node_passes_on_what_it_wants():
    wiring = overlay("a", "b", libbroker="x y z", links="a b, b x, x y, y z", a="/t", x="/t", y="/t", z="/t")
    assert publish(wiring, "a") == ["x", "y", "z"]
    assert publish(wiring, "z") == ["a", "x", "y"]


@pytest.mark.parametrize(
    "links",
    [
        "a x, b y, a b, x y",
        "a x, a y, x y",
        "a x, b y, a b, x z, z y",
        "a x, b y, c z, a b, b c, x y, y z",
        "a x, b y, c z, a b, b c, x y, y z, a z, c x",
    ],
)
@pytest.mark.parametrize("publisher", ["a", "b", "x", "y", "z"])
def test_libbroker_nodes_that_are_beside_each_other_get_everything_once_as_soon_as_that_is_known(
    links, publisher
):
    """The first message shows it: the nodes on the way may get it again, but it ends, also out there."""
    everybody = {name for name in "abcxyz" if name in links}
    if publisher not in everybody:
        return
    ours = "".join(sorted(everybody & {*"abc"}))
    theirs = " ".join(sorted(everybody & {*"xyz"}))
    wiring = overlay(*ours, libbroker=theirs, links=links, **dict.fromkeys(everybody, "/t"))
    first = publish(wiring, publisher)
    assert {*first} == everybody - {publisher} or {*first} == everybody
    wiring.tick(3.0)
    for name in sorted(everybody):
        assert publish(wiring, name) == sorted(everybody - {name}), name


def test_knowledge_of_a_connection_is_kept_without_messages_and_forgotten_with_it():
    wiring = overlay("a", "b", libbroker="x y", links="a x, b y, a b, x y", a="/t", b="/t", x="/t", y="/t")
    publish(wiring, "a")
    wiring.tick(60.0)
    assert publish(wiring, "a") == ["b", "x", "y"]
    wiring.cut("x", "y")
    wiring.tick(20.0)
    assert publish(wiring, "a") == ["b", "x", "y"] and publish(wiring, "y") == ["a", "b", "x"]


def test_a_value_that_takes_no_mark_is_addressed_so_that_nobody_passes_it_on():
    wiring = overlay("a", "b", libbroker="x y", links="a x, b y, a b, x y", a="/t", b="/t", x="/t", y="/t")
    assert publish(wiring, "a", payload=PLAIN) == ["b", "x", "y"]


def test_an_addressed_message_reaches_the_leaf_and_nobody_behind_it():
    wiring = overlay("a", "b", libbroker="x y", links="a b, b x, x y", x="/t", y="/t")
    wiring.carry("a", wiring["a"].core.publish_to(identity("x"), b"/t", EVENT))
    assert [one for one, *_ in wiring.got] == ["x"]
    assert wiring.got[0][3] == EVENT


# -- stores ------------------------------------------------------------------------------------------------


def put(key: str, value: int) -> Put:
    return Put(key, Count(value), None, NO_ENTITY)


@pytest.mark.parametrize(("master", "clones"), [("z", "ac"), ("a", "zc"), ("a", "z"), ("z", "y")])
def test_stores_are_shared_with_libbroker_over_any_number_of_hops_of_ours(master, clones):
    """Nodes of version 1 only, which send acknowledgements to direct peers alone, as libbroker does."""
    wiring = overlay("a", "b", "c", "y", "z", plain="y z", links="a b, b c, c z, a y")
    wiring.carry(master, wiring[master].attach_master("st", Content("st")))
    for name in clones:
        wiring.carry(name, wiring[name].attach_clone("st"))
    wiring.tick(2.0)
    for number, name in enumerate([master, *clones]):
        wiring.carry(name, wiring[name].write(wiring.now, "st", put(name, number)))
    wiring.tick(2.0)
    expected = {name: Count(number) for number, name in enumerate([master, *clones])}
    for name in [master, *clones]:
        store = wiring[name].stores["st"]
        assert dict(iter(store.content)) == expected and store.is_idle


def test_a_master_behind_another_node_is_known():
    wiring = overlay("a", "b", "z", plain="z", links="a b, b z")
    wiring.carry("z", wiring["z"].attach_master("st"))
    wiring.tick(0.2)
    with pytest.raises(StoreRefused, match="has a master") as caught:
        wiring["a"].attach_master("st")
    assert caught.value.code is ErrorCode.MASTER_EXISTS


def test_octets_that_are_not_a_command_are_counted():
    wiring = overlay("a", "b", libbroker="x", links="a b, b x", a="/t", x="/t")
    envelope = encode_envelope(Envelope(COMMAND, identity("x"), NOBODY, b"/t", b"short"))
    wiring.carry("x", wiring["x"].peerings.send(identity("b"), envelope))
    wiring.carry("a", wiring["a"].core.publish(b"/t", b"short", COMMAND))
    assert wiring["b"].core.gateway.discarded == {"truncated": 2}


def test_a_message_for_a_third_node_is_not_taken():
    wiring = overlay("a", "b", libbroker="x", links="a b, b x", a="/t", b="/t")
    envelope = encode_envelope(Envelope(DATA, identity("x"), identity("a"), b"/t", EVENT))
    wiring.carry("x", wiring["x"].peerings.send(identity("b"), envelope))
    assert wiring.got == [] and wiring["b"].core.gateway.discarded == {"receiver": 1}


TOO_SHORT = EVENT[:-1]


def test_malformed_values_go_no_further_than_the_node_that_they_come_to():
    wiring = overlay("a", "b", libbroker="x y", links="a b, b x, b y", a="/t", b="/t", y="/t")
    assert publish(wiring, "x", payload=TOO_SHORT) == []
    assert publish(wiring, "x") == ["a", "b", "y"]
    assert wiring["b"].core.gateway.discarded == {"undecodable": 1}


@pytest.mark.parametrize("large", [False, True])
def test_the_payload_of_a_large_libbroker_message_is_checked_before_it_is_heard(large):
    wiring = overlay("a", "b", libbroker="x", links="a b, b x", a="/t")
    core = wiring["b"].core
    number = core.peerings.peers[identity("x")]
    payload = encode(["x" * (CHECKED_OCTETS * large)])[:-1]
    message = encode_envelope(Envelope(DATA, identity("x"), NOBODY, b"/t", payload))[4:]
    assert core.payload_to_check(number, message) == (payload if large else None)
    assert core.payload_to_check(99, message) is None
    wiring.carry("b", core.undecodable(wiring.now, number, message))
    assert wiring.got == [] and core.gateway.discarded == {"undecodable": 1}


def test_each_turn_tells_some_leaves_only():
    names = [f"x{number}" for number in range(10)]
    wiring = Wiring("a", libbroker=" ".join(names)).connect(*[f"{name} a" for name in names])
    many = [b"/%d/" % number for number in range(MOST_TOLD)]
    wiring.sent.clear()
    wiring.carry("a", wiring["a"].subscribe(many))
    told = lambda: sum(decode_envelope(octets[4:]).kind == ROUTING_UPDATE for _, octets in wiring.sent)  # noqa: E731
    assert 0 < told() < 10
    wiring.tick(1.0)
    assert told() == 10
    assert all(len(wiring[name].filters[identity("a")]) == MOST_TOLD for name in names)


def test_peers_that_go_at_once_while_one_of_them_holds_up_the_other():
    wiring = overlay("a", libbroker="x y", links="x a, y a", x="/t")
    core = wiring["a"].core
    core.congested(identity("x"))
    large = encode((Count(1), Count(1), ("ping", ("x" * 100_000,))))
    while not core.flow.paused:
        wiring.carry("y", wiring["y"].publish(b"/t", large))
    wiring["a"].shut_down(wiring.now)  # and its goodbyes get lost
    ends = wiring.now + GOODBYE_SECONDS + 1
    while wiring.now < ends:
        wiring.now += 0.1
        wiring["a"].tick(wiring.now)
    assert core.peerings.peers == {}


def test_a_node_of_ours_that_speaks_version_1_only_is_like_one_of_libbroker_but_passes_nothing_on():
    wiring = overlay("a", "b", "y", "z", plain="y z", links="a b, z b, y z", a="/t", b="/t", y="/t", z="/t")
    assert publish(wiring, "a") == ["b", "z"]
    assert publish(wiring, "z") == ["a", "b", "y"]
    assert publish(wiring, "y") == ["z"]
