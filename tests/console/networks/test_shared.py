"""However many ask, the network is asked once a second."""

from __future__ import annotations

import gevent
import pytest

from dafka.console import limits
from dafka.console.networks.shared import Shared


def test_simultaneous_requests_share_one_look():
    looks = []

    def look():
        looks.append(1)
        gevent.sleep(0.01)
        return len(looks)

    shared = Shared(look)
    found = gevent.joinall([gevent.spawn(shared) for _ in range(20)], raise_error=True)
    assert {one.value for one in found} == {1} and len(looks) == 1


def test_an_old_sample_is_taken_again(monkeypatch):
    looks = iter(range(10))
    shared = Shared(lambda: next(looks))
    assert shared() == shared() == 0
    monkeypatch.setattr(limits, "SAMPLE_SECONDS", 0.0)
    assert shared() == 1


def test_a_look_that_fails_is_not_kept_as_an_answer():
    answers = iter([ValueError("away"), 7])

    def look():
        found = next(answers)
        if isinstance(found, ValueError):
            raise found
        return found

    shared = Shared(look)
    with pytest.raises(ValueError, match="away"):
        shared()
    assert shared() == 7
