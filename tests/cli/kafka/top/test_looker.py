"""Looking beside the screen."""

from __future__ import annotations

import threading
from queue import Queue

import pytest
from kafka.errors import KafkaConnectionError

from dafka.broker.looking.watching import Look
from dafka.cli.kafka.top.looker import Looker

LOOK = Look("it", 1, [], [], [], {"partitions": 0, "groups": 0})


@pytest.mark.parametrize("error", [KafkaConnectionError("away"), KeyError("odd"), NotImplementedError()])
def test_looks_and_errors_are_told_one_after_the_other(error: Exception) -> None:
    told: Queue[object] = Queue()
    away = [False]

    def look() -> Look:
        if away[0]:
            raise error
        return LOOK

    looker = Looker(look, 0.001, told.put)
    looker.start()
    assert told.get(timeout=100) is LOOK
    away[0] = True
    while told.get(timeout=100) is not error:
        pass
    away[0] = False
    while told.get(timeout=100) is not LOOK:
        pass
    looker.end()


def test_one_that_is_paused_does_not_look() -> None:
    told: Queue[object] = Queue()
    looker = Looker(lambda: LOOK, 0.001, told.put)
    looker.pause(True)
    looker.start()
    told.get(timeout=100)  # it begins with a look
    assert looker.paused and told.empty()
    looker.pause(False)
    assert told.get(timeout=100) is LOOK
    looker.end()


def test_a_broker_that_does_not_answer_holds_up_no_end() -> None:
    asked, forever = threading.Event(), threading.Event()

    def look() -> Look:
        asked.set()
        forever.wait()
        return LOOK

    told: Queue[object] = Queue()
    looker = Looker(look, 1.0, told.put)
    looker.start()
    assert asked.wait(100)
    looker.end()
    forever.set()
    looker._thread.join(100)
    assert not looker._thread.is_alive() and told.empty()
