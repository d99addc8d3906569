"""What threads publish waits in runs of one topic until the hub takes it, in order and bounded."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import count

import pytest
from timing import until

from dafka.hub import hub as hub_module
from dafka.hub.hub import get_hub
from dafka.overlay import Overloaded
from dafka.overlay.node import limits
from dafka.overlay.node import pending as pending_module
from dafka.overlay.node.pending import Pending
from tests.compat.interrupting import InterruptedCall


@pytest.fixture
def drains():
    return []


@pytest.fixture
def pending(drains):
    return Pending(get_hub(), lambda: drains.append(None))


def test_messages_on_one_topic_in_a_row_are_one_run(pending):
    for topic in (b"/a", b"/a", b"/b", b"/a"):
        pending.put(topic, topic.upper(), None)
    assert pending.count == 4
    assert pending.take() == [(b"/a", [b"/A", b"/A"]), (b"/b", [b"/B"]), (b"/a", [b"/A"])]
    assert pending.take() == []
    assert pending.count == 0


def test_a_part_of_a_run_can_be_taken_and_the_rest_can_grow(pending):
    for number in range(5):
        pending.put(b"/a", b"%d" % number, None)
    assert pending.take(3) == [(b"/a", [b"0", b"1", b"2"])]
    pending.put(b"/a", b"5", None)
    assert pending.take() == [(b"/a", [b"3", b"4", b"5"])]
    pending.put(b"/a", b"6", None)
    assert pending.take(1) == [(b"/a", [b"6"])]


@pytest.mark.parametrize(("bound", "most"), [("PENDING_MESSAGES", 10), ("PENDING_OCTETS", 50)])
def test_it_is_bounded_in_messages_and_in_octets(monkeypatch, bound, most):
    monkeypatch.setattr(limits, bound, most)
    pending = Pending(get_hub(), lambda: None)
    for _ in range(10):
        pending.put(b"/a", b"12345", None)
    with pytest.raises(Overloaded):
        pending.put(b"/a", b"12345", 0.01)
    pending.take(1)
    pending.put(b"/a", b"12345", 0.01)


def test_a_blocked_topic_waits_and_others_do_not(pending):
    pending.put(b"/a", b"", None)
    pending.block(b"/a")
    with pytest.raises(Overloaded):
        pending.put(b"/a", b"", 0.01)
    pending.put(b"/b", b"", None)
    pending.unblock(lambda topic: False)
    pending.put(b"/a", b"", None)


def test_nothing_that_threads_put_is_lost_or_changes_places_while_the_hub_takes(monkeypatch):
    monkeypatch.setattr(limits, "PENDING_MESSAGES", 50)
    count, got = 2000, []
    done = threading.Event()

    def drain():
        while runs := pending.take(7):
            for topic, payloads in runs:
                got.extend((topic, int(payload)) for payload in payloads)
        if len(got) == 3 * count:
            done.set()

    pending = Pending(get_hub(), drain)

    def publish(topic):
        for number in range(count):
            pending.put(topic, b"%d" % number, None)

    threads = [threading.Thread(target=publish, args=(topic,)) for topic in (b"/a", b"/b", b"/c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done.wait(60)
    for topic in (b"/a", b"/b", b"/c"):
        assert [number for one, number in got if one == topic] == list(range(count))


def test_messages_that_wait_are_taken_by_the_hub_whichever_call_ctrl_c_ends():
    for number in count(1):
        taken = []
        pending = Pending(get_hub(), lambda: taken.extend(pending.take()))  # noqa: B023
        pending.put(b"/a", b"", None)
        until(lambda: taken)  # noqa: B023
        interruption = InterruptedCall(number, pending_module, hub_module)
        with suppress(KeyboardInterrupt), interruption:
            for topic in (b"/a", b"/a", b"/b"):
                pending.put(topic, b"", None)
        pending.put(b"/b", b"later", None)
        until(lambda: b"later" in taken[-1][1])  # noqa: B023
        assert (pending.count, pending._octets) == (0, 0)
        if not interruption.interrupted:
            break
    assert number > 10
