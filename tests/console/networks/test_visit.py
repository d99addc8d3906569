"""The console joins a network for those who look at it, and leaves it when nobody does."""

from __future__ import annotations

import time

import gevent
import gevent.event
import pytest

from dafka.console import limits
from dafka.console.networks.visit import Visit

SECONDS = 100.0  # a limit for what hangs


class Node:
    def __init__(self):
        self.greeted = 0
        self.left = gevent.event.Event()

    def greet(self):
        assert not self.left.is_set()
        self.greeted += 1
        gevent.sleep(0)

    def close(self):
        assert not self.left.is_set(), "closed twice"
        self.left.set()


@pytest.fixture
def nodes():
    return []


@pytest.fixture
def visit(nodes):
    def join():
        nodes.append(Node())
        return nodes[-1]

    visit = Visit(join, Node.greet)
    yield visit
    visit.close()


def look(visit):
    with visit.look() as node:
        return node


def test_all_looks_share_a_node_that_is_greeted_once(visit, nodes):
    found = gevent.joinall([gevent.spawn(look, visit) for _ in range(5)], raise_error=True)
    assert [one.value for one in found] == nodes * 5
    assert [node.greeted for node in nodes] == [1]


def test_looks_follow_one_another(visit):
    inside = []

    def look_long():
        with visit.look():
            inside.append(1)
            gevent.sleep(0)
            assert len(inside) == 1
            inside.pop()

    gevent.joinall([gevent.spawn(look_long) for _ in range(5)], raise_error=True)


def test_the_node_leaves_when_nobody_looks_and_joins_again(visit, nodes, monkeypatch):
    monkeypatch.setattr(limits, "MESH_IDLE_SECONDS", 0.01)
    first = look(visit)
    assert first.left.wait(SECONDS)
    with visit.joined() as node:
        assert node is None
    assert look(visit) is nodes[1] is not first


def test_a_look_keeps_the_node(visit, monkeypatch):
    monkeypatch.setattr(limits, "MESH_IDLE_SECONDS", 0.01)
    with visit.look() as node:
        assert not node.left.wait(0.05)
    assert node.left.wait(SECONDS)


def test_a_look_in_the_last_moment_keeps_the_node(visit, monkeypatch):
    monkeypatch.setattr(limits, "MESH_IDLE_SECONDS", 0.01)
    with visit.look() as node:
        gevent.sleep(0.05)  # the node's time is over, and its end waits for this look
        visit._looked = time.monotonic() + SECONDS
    assert not node.left.wait(0.05)


def test_without_a_network_there_is_no_node():
    there = []
    visit = Visit(lambda: there.pop() if there else None, Node.greet)
    assert look(visit) is None
    there.append(Node())
    assert look(visit).greeted == 1
    visit.close()


def test_only_a_look_joins(visit, nodes):
    with visit.joined() as node:
        assert node is None
    assert nodes == []
    first = look(visit)
    with visit.joined() as node:
        assert node is first


def test_closing_leaves_and_the_next_look_joins_again(visit, nodes):
    first = look(visit)
    visit.close()
    visit.close()
    assert first.left.is_set()
    assert look(visit) is not first
    assert len(nodes) == 2


def test_a_node_that_cannot_be_greeted_leaves(nodes):
    def greet(node):
        if len(nodes) == 1:
            raise OSError("away")

    def join():
        nodes.append(Node())
        return nodes[-1]

    visit = Visit(join, greet)
    with pytest.raises(OSError, match="away"):
        look(visit)
    assert nodes[0].left.is_set()
    assert look(visit) is nodes[1]
    visit.close()


def test_the_end_of_the_greeting_leaves_no_node_behind(nodes):
    def join():
        nodes.append(Node())
        return nodes[-1]

    visit = Visit(join, lambda node: gevent.sleep(SECONDS))
    looking = gevent.spawn(look, visit)
    gevent.sleep(0)
    assert len(nodes) == 1
    looking.kill()
    assert nodes[0].left.is_set()
