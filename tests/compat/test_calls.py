"""Calls to the broker whose callers wait no longer than they want to."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import gevent
import gevent.event
import pytest
from kafka.errors import KafkaTimeoutError, NotLeaderForPartitionError
from timing import until

from compat.kafka import _calls
from compat.kafka._calls import Calls, NotYetError
from dafka.broker import BrokerStoppedError
from dafka.hub.hub import get_hub


class Client:
    """What calls need of a client."""

    broker = "the broker that runs now"

    def __init__(self) -> None:
        self.hub = get_hub()

    def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        return self.hub.run(fn, *args)


@pytest.fixture
def calls() -> Calls:
    client: Any = Client()
    return Calls(client)


class Slow:
    """A call that takes some seconds; how often it was made."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.made = 0

    def __call__(self, answer: object) -> object:
        self.made += 1
        gevent.sleep(self.seconds)
        return answer


class Held:
    """A call that waits until it may go on; how often it was made."""

    def __init__(self) -> None:
        self.go_on = gevent.event.Event()  # belongs to the hub
        self.made = 0
        self.ended = False

    def __call__(self, answer: object) -> object:
        self.made += 1
        self.go_on.wait()
        self.ended = True
        return answer


def fail() -> None:
    raise NotLeaderForPartitionError("moved")


def test_a_call_that_ended_with_the_broker_is_made_again(calls: Calls) -> None:
    held = Held()
    stops = [True]

    def call() -> object:
        answer = held("answer")
        if stops:
            raise BrokerStoppedError("stopped")
        return answer

    with pytest.raises(NotYetError):
        calls.resume("key", 0.0, call)
    get_hub().run(held.go_on.set)
    until(lambda: held.ended)
    with pytest.raises(BrokerStoppedError):  # it is made again, and meets the same
        until(lambda: calls.resume("key", 5.0, call))
    assert held.made == 2
    stops.clear()
    assert calls.resume("key", 5.0, call) == "answer"


# -- methods with a timeout ---------------------------------------------------------------------


def test_an_answer_in_time_is_returned(calls: Calls) -> None:
    assert calls.within(5_000, "Metadata", Slow(0.0), "answer") == "answer"
    assert calls.within(None, "Metadata", Slow(0.01), "answer") == "answer"


def test_a_late_answer_is_a_timeout_with_the_name_of_the_request(calls: Calls) -> None:
    began = monotonic()
    with pytest.raises(KafkaTimeoutError, match="The broker did not answer Metadata within"):
        calls.within(20, "Metadata", Slow(100.0), "answer")
    assert monotonic() - began < 50


def test_an_error_of_the_call_is_raised(calls: Calls) -> None:
    with pytest.raises(NotLeaderForPartitionError):
        calls.within(5_000, "Metadata", fail)
    with pytest.raises(NotLeaderForPartitionError):
        calls.resume("key", 5.0, fail)


# -- polls ---------------------------------------------------------------------------------------


def test_a_call_that_a_poll_has_left_goes_on_and_the_next_poll_gets_its_answer(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_calls, "GRACE", 0.01)
    monkeypatch.setattr(_calls, "USABLE", 100.0)
    held = Held()
    for number in range(3):
        with pytest.raises(NotYetError):
            calls.resume("key", 0.0, held, f"answer {number}")
    get_hub().run(held.go_on.set)
    assert calls.resume("key", 50.0, held, "not asked for") == "answer 0"
    assert held.made == 1
    assert calls.resume("key", 50.0, held, "the next") == "the next"


def test_calls_of_other_keys_are_their_own(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_calls, "GRACE", 0.01)
    with pytest.raises(NotYetError):
        calls.resume("slow", 0.0, Slow(100.0), "late")
    assert calls.resume("other", 5.0, Slow(0.0), "at once") == "at once"


def test_a_call_is_repeated_if_its_answer_was_not_fetched_for_long(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_calls, "GRACE", 0.01)
    monkeypatch.setattr(_calls, "USABLE", 0.0)
    held = Held()
    with pytest.raises(NotYetError):
        calls.resume("key", 0.0, held, "old")
    get_hub().run(held.go_on.set)
    until(lambda: held.ended)
    get_hub().run(gevent.sleep, 0.05)  # its outcome is noted, and time has gone by
    assert calls.resume("key", 50.0, held, "new") == "new"
    assert held.made == 2


def test_functions_called_in_the_hub_get_the_broker_that_runs_now(calls: Calls) -> None:
    assert calls.broker == "the broker that runs now"
