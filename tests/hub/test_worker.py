"""A thread that computes for the hub, and asks it meanwhile without being held."""

from __future__ import annotations

import threading
from typing import Any

import gevent
import gevent.event
import pytest
from broker.clients import Client
from broker.server.attack_scene import topic_of
from broker.server.attacks_on_groups import commit
from broker.server.client import WireClient
from kafka.protocol.admin import DescribeConfigsRequest
from timing import until

from dafka import Broker
from dafka.hub.hub import get_hub
from dafka.hub.worker import Worker, ask


@pytest.fixture(scope="module")
def worker() -> Worker:
    return Worker()


def in_hub(function: Any, *args: Any) -> Any:
    return get_hub().run(function, *args)


def test_ask_runs_in_the_hub_and_the_rest_in_one_other_thread(worker: Worker) -> None:
    def function(first: int) -> list[Any]:
        mine = threading.get_ident()
        asked = ask(lambda second: (first + second, get_hub().here), second=2)
        return [asked, mine, threading.get_ident(), get_hub().here]

    asked, before, after, here = in_hub(worker.run, function, 1)
    assert asked == (3, True)
    assert before == after == in_hub(worker.run, threading.get_ident)
    assert not here


def test_errors_of_either_side_reach_the_other_and_no_further(worker: Worker, capfd: Any) -> None:
    def refuse() -> None:
        raise OSError("no space")

    def function() -> str:
        try:
            ask(refuse)
        except OSError as error:
            raise ValueError(f"it said: {error}") from error
        return ""

    with pytest.raises(ValueError, match="it said: no space"):
        in_hub(worker.run, function)
    assert in_hub(worker.run, int, "7") == 7
    assert capfd.readouterr() == ("", "")


def test_functions_that_wait_for_the_hub_keep_no_other_waiting(worker: Worker) -> None:
    def play() -> list[int]:
        opened = gevent.event.Event()

        def function(number: int) -> int:
            ask(opened.wait)
            return number

        waiting = [gevent.spawn(worker.run, function, number) for number in range(50)]
        assert worker.run(int, "7") == 7
        assert not any(green.ready() for green in waiting)
        opened.set()
        return [green.get() for green in waiting]

    assert in_hub(play) == list(range(50))


def test_a_caller_that_is_killed_ends_its_function(worker: Worker) -> None:
    ended: list[bool] = []

    def play() -> None:
        asked = gevent.event.Event()

        def wait() -> None:
            asked.set()
            gevent.sleep(60)

        def function() -> None:
            try:
                ask(wait)
            finally:
                ended.append(get_hub().here)

        green = gevent.spawn(worker.run, function)
        asked.wait()
        green.kill()
        assert worker.run(int, "7") == 7

    in_hub(play)
    assert ended == [False]


def test_in_any_other_thread_all_of_it_is_a_plain_call(worker: Worker) -> None:
    mine = threading.get_ident()
    assert worker.run(lambda: (threading.get_ident(), ask(lambda: get_hub().here))) == (mine, True)


def test_a_large_request_that_waits_for_the_disk_keeps_no_other_large_one_waiting() -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    wide = DescribeConfigsRequest(
        resources=[resource(resource_type=2, resource_name="wide", configuration_keys=None)],
        include_synonyms=True,
        include_documentation=False,
    )
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as large, WireClient(broker) as other:
        other.ask(topic_of("wide", 3000), 5)
        storage = Client(broker).core.log._storage
        write, reached, opened = storage.commit, threading.Event(), threading.Event()

        def held(*rows: Any) -> None:
            reached.set()
            assert opened.wait(100)
            write(*rows)

        storage.commit = held
        try:
            large.socket.sendall(commit("wide", "group", 3000))
            until(reached.is_set)
            assert not other.ask(wide, 4).results[0].error_code
            assert not opened.is_set()
        finally:
            opened.set()
            del storage.commit
        assert len(large.receive_frame()) > 3000


def test_arguments_and_outcome_of_a_question_are_freed_in_the_thread(worker: Worker) -> None:
    """Very many objects take long to free, which would be a long turn of the hub."""
    freed: list[bool] = []

    class Freed:
        def __del__(self) -> None:
            freed.append(get_hub().here)

    def function() -> None:
        ask(lambda _: Freed(), Freed())

    in_hub(worker.run, function)
    assert freed == [False, False]
