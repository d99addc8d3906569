"""The question about all peerings, and its answer."""

from __future__ import annotations

import pytest
from overlay.wiring import Wiring, identity

from dafka.overlay.values import decode
from dafka.overlay.wire.links import ANSWER, encode_links, links_of
from dafka.protocol.errors import MalformedMessage

ONE, OTHER = bytes(range(16)), b"\xff" * 16


def answers(wiring: Wiring, asker: str) -> list[tuple[str, bytes]]:
    return [
        (publisher, payload)
        for name, publisher, topic, payload in wiring.got
        if (name, topic) == (asker, ANSWER)
    ]


def test_an_answer_is_read_as_it_was_written() -> None:
    links = links_of(decode(encode_links([ONE, OTHER], (b"/a", b"\xff"))))
    assert links.neighbours == (ONE, OTHER)
    assert links.filter == (b"/a", b"\xff")


@pytest.mark.parametrize(
    "value",
    [None, (1,), (2, (), ()), (1, ("zz",), ()), (1, ("00",), ()), (1, (3,), ()), (1, (), (4,))],
    ids=range(7),
)
def test_anything_but_an_answer_is_an_error(value: object) -> None:
    with pytest.raises(MalformedMessage):
        links_of(value)


def test_a_node_answers_over_any_number_of_hops_with_its_peers_and_its_filter() -> None:
    wiring = Wiring("a", "b", "c", "d").connect("a b", "b c", "c d", "d b")
    wiring.carry("a", wiring["a"].subscribe([ANSWER]))
    wiring.carry("c", wiring["c"].subscribe([b"/wanted"]))
    wiring.carry("a", wiring["a"].ask_links(identity("c")))
    ((publisher, payload),) = answers(wiring, "a")
    assert publisher == "c"
    links = links_of(decode(payload))
    assert set(links.neighbours) == {identity("b"), identity("d")}
    assert links.filter == (b"/wanted",)


def test_a_peer_of_libbroker_is_not_asked() -> None:
    wiring = Wiring("a", "b", plain="b").connect("a b")
    assert wiring["a"].ask_links(identity("b")) == []
    assert wiring["a"].ask_links(identity("nobody")) == []
