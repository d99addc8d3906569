"""Routes: the receivers of a message, news of a HELLO's subscribers, and the state after a node has left."""

from __future__ import annotations

from dafka.mesh.node import Node
from dafka.mesh.routes import Routes


class Greeter(Node):
    hello_ids = b"LG"


def routes(**subscriptions: list[bytes]) -> tuple[Routes, dict[str, Node]]:
    """Nodes by their names, with these subscriptions."""
    one, nodes = Routes(), {name: Node() for name in subscriptions}
    for name, prefixes in subscriptions.items():
        for prefix in prefixes:
            one.subscribe(nodes[name], prefix)
    return one, nodes


def test_a_message_goes_to_subscribers_of_its_exact_topic_or_its_id_octet():
    one, nodes = routes(exact=[b"Mhello"], store=[b"M"], other=[b"Mhello2"], beginning=[b"Mhel"])
    assert one.receivers(b"Mhello") == [nodes["exact"], nodes["store"]]
    assert one.receivers(b"Mbye") == [nodes["store"]]
    assert one.receivers(b"Hhello") == []


def test_a_subscriber_to_both_gets_it_once():
    one, nodes = routes(both=[b"M", b"Mhello"], store=[b"M"])
    assert one.receivers(b"Mhello") == [nodes["both"], nodes["store"]]
    assert one.receivers(b"M") == [nodes["both"], nodes["store"]]


def test_a_node_does_not_count_as_an_audience_of_its_own():
    one, nodes = routes(alone=[b"Mhello"], store=[b"H"])
    assert not one.has_others(b"Mhello", nodes["alone"])
    assert one.has_others(b"Mhello", nodes["store"])
    assert one.has_others(b"Mhello", None)
    assert one.has_others(b"Hhello", nodes["alone"])
    one.subscribe(nodes["store"], b"M")
    assert one.has_others(b"Mhello", nodes["alone"])


def test_subscribing_twice_counts_once():
    one, nodes = routes(node=[])
    assert one.subscribe(nodes["node"], b"Mhello")
    assert not one.subscribe(nodes["node"], b"Mhello")
    assert one.unsubscribe(nodes["node"], b"Mhello")
    assert not one.unsubscribe(nodes["node"], b"Mhello")
    assert b"Mhello" not in one


def test_a_prefix_is_there_as_long_as_a_node_has_it():
    one, nodes = routes(first=[b"Mhello"], second=[b"Mhello", b"H"])
    assert (len(one), one.nodes) == (2, 2)
    one.unsubscribe(nodes["first"], b"Mhello")
    assert b"Mhello" in one
    one.unsubscribe(nodes["second"], b"Mhello")
    assert (len(one), one.of(nodes["second"])) == (1, {b"H"})


def test_a_node_that_joins_is_told_of_the_hellos_that_it_asks_for():
    one, _ = routes(consumer=[b"Lone", b"Mhello"], store=[b"G", b"Wtwo"])
    assert one.attach(Greeter()) == [b"Lone", b"G"]
    assert one.attach(Node()) == []


def test_a_node_that_asks_for_hellos_is_known_until_it_leaves():
    one, greeter = Routes(), Greeter()
    one.attach(greeter)
    assert one.greeters(b"Lsomebody") == one.greeters(b"G") == [greeter]
    assert one.greeters(b"Wsomebody") == []
    one.detach(greeter)
    assert one.greeters(b"Lsomebody") == []
    assert one.nodes == 0


def test_a_hello_that_nobody_wants_any_more_is_not_told():
    one, nodes = routes(consumer=[b"Lone"])
    one.unsubscribe(nodes["consumer"], b"Lone")
    assert one.attach(Greeter()) == []
