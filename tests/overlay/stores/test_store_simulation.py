"""Stores converge to one content, put_unique has one winner, nothing written is lost."""

from __future__ import annotations

import pytest
from overlay.stores.simulation import simulate

from dafka.overlay.channels.consumer import Lost
from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Master
from dafka.overlay.wire.commands import PutUnique


@pytest.mark.parametrize("first", range(0, 200, 10))
def test_stores_converge_whatever_is_lost_and_whoever_restarts(first):
    for seed in range(first, first + 10):
        try:
            simulate(seed)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")


def does_not_begin_anew_after_a_loss(patch):
    carry = Clone._carry
    patch.setattr(
        Clone, "_carry", lambda self, steps: carry(self, [s for s in steps if not isinstance(s, Lost)])
    )


def forgets_what_is_not_acknowledged(patch):
    def forget(self):
        self._writer = None

    patch.setattr(Clone, "_leave_writer", forget)


def decides_again_when_asked_again(patch):
    put_unique = Master._put_unique

    def eager(self, now, action: PutUnique):
        self._answers.clear()
        return put_unique(self, now, action)

    patch.setattr(Master, "_put_unique", eager)


def keeps_what_the_new_content_does_not_have(patch):
    def merge(self, entries, publisher):
        return [self.put(key, value, None, publisher) for key, value in entries]

    patch.setattr(Content, "replace", merge)


def writes_as_the_same_writer_to_another_master(patch):
    patch.setattr(Clone, "_leave_writer", lambda self: None)


def lets_keys_live_for_ever_at_clones(patch):
    expire = Master._expire
    patch.setattr(Master, "_expire", lambda self, now: expire(self, now)[:1])


def asks_only_its_old_master(patch):
    attach = Clone._attach

    def loyal(self, command, state):
        return attach(self, command, state) if self.master in (None, command.sender) else []

    patch.setattr(Clone, "_attach", loyal)


@pytest.mark.parametrize(
    ("fault", "first"),
    [
        (does_not_begin_anew_after_a_loss, 70),
        (forgets_what_is_not_acknowledged, 0),
        (decides_again_when_asked_again, 0),
        (keeps_what_the_new_content_does_not_have, 0),
        (writes_as_the_same_writer_to_another_master, 0),
        (lets_keys_live_for_ever_at_clones, 0),
        (asks_only_its_old_master, 0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_stores_that_do_this_are_found(fault, first, monkeypatch):
    fault(monkeypatch)
    for seed in range(first, first + 200):
        try:
            simulate(seed)
        except (AssertionError, KeyError):
            return
    pytest.fail("no seed found it")
