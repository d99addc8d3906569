"""What waits for the user of a consumer."""

from __future__ import annotations

import subprocess
import sys
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


def test_records_taken_while_more_come_are_counted_right() -> None:
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


def test_the_hub_puts_a_run_while_a_user_takes_one_where_gevent_has_patched_threads() -> None:
    """A lock of gevent raises an exception in the hub if another thread has it, and the run would be lost."""
    program = """
from gevent import monkey
monkey.patch_all()
sleep = monkey.get_original("time", "sleep")
from dafka.hub.hub import get_hub
from dafka.mesh.inbox import NewestRuns
from dafka.roles.outputs import Deliver

hub, inbox = get_hub(), NewestRuns()
inbox._lock.acquire()
hub.post(inbox.put, Deliver(b"t", b"A" * 32, 0, [b"a"]))
sleep(0.2)
inbox._lock.release()
hub.run(lambda: None)
print(len(inbox))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("1\n", "")
