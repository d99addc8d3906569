"""What waits for the user of a consumer."""

from __future__ import annotations

import threading

from dafka.mesh.inbox import AllRuns, NewestRuns
from dafka.roles.outputs import Deliver

ONE, TWO = b"A" * 32, b"B" * 32


def run(address: bytes, first: int, *contents: bytes) -> Deliver:
    return Deliver(b"t", address, first, list(contents))


def test_every_run_waits_in_its_order() -> None:
    inbox = AllRuns()
    runs = [run(ONE, 0, b"a", b"bc"), run(ONE, 2, b"d"), run(TWO, 0, b"e")]
    assert [inbox.put(one) for one in runs] == [(2, 3), (1, 1), (1, 1)]
    assert len(inbox) == 3 and [inbox.take() for _ in range(4)] == [*runs, None]


def test_a_newer_message_takes_the_place_of_the_one_that_waits() -> None:
    inbox = NewestRuns()
    assert inbox.put(run(ONE, 0, b"a", b"bc")) == (1, 2)
    assert inbox.put(run(TWO, 7, b"x")) == (1, 1)
    assert inbox.put(run(ONE, 2, b"d", b"e", b"fgh")) == (0, 1)
    assert len(inbox) == 2
    assert inbox.take() == run(ONE, 4, b"fgh"), "its partition has waited longest"
    assert inbox.put(run(ONE, 5, b"i")) == (1, 1)
    assert [inbox.take(), inbox.take(), inbox.take()] == [run(TWO, 7, b"x"), run(ONE, 5, b"i"), None]


def test_what_is_taken_while_more_comes_is_counted_right() -> None:
    inbox = NewestRuns()
    taken: list[Deliver] = []
    ended = threading.Event()

    def take() -> None:
        while not ended.is_set() or len(inbox):
            found = inbox.take()
            if found is not None:
                taken.append(found)

    thread = threading.Thread(target=take)
    thread.start()
    records = sum(inbox.put(run(ONE, number, b"a"))[0] for number in range(20_000))
    ended.set()
    thread.join()
    assert records == len(taken), "what is not taken was replaced"
    assert [one.first for one in taken] == sorted({one.first for one in taken})
    assert taken[-1].first == 19_999
