"""What a person is told while a broker does not answer."""

from __future__ import annotations

import threading

from dafka.broker.looking import silence


def test_it_is_told_once_after_a_while(monkeypatch):
    monkeypatch.setattr(silence, "SILENCE", 0.001)
    told, lines = threading.Event(), []
    with silence.told_of_silence("kafka:9092", 20, lambda line: (lines.append(line), told.set())):
        assert told.wait(60)
    (line,) = lines
    assert line.startswith("no answer from kafka:9092 yet; trying until ") and line.endswith(", 20 s in all")


def test_nothing_is_told_of_what_is_quick():
    told, before = threading.Event(), set(threading.enumerate())
    with silence.told_of_silence("kafka:9092", 20, lambda line: told.set()):
        # Threads of other tests may end meanwhile, so the timer is looked for by what it would say.
        (timer,) = (each for each in set(threading.enumerate()) - before if isinstance(each, threading.Timer))
        assert timer.interval == silence.SILENCE and timer.args[0].startswith("no answer from kafka:9092 yet")
    timer.join(60)
    assert not timer.is_alive() and not told.is_set()
