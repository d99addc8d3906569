"""Many messages as batches of octets."""

from __future__ import annotations

import random

import pytest
from zmtp.vectors import message

from dafka.sockets import limits
from dafka.sockets.batches import batches


def test_batches_have_all_messages_in_order_and_are_bounded():
    dice = random.Random(7)
    for _ in range(50):
        messages = [
            [b"x" * dice.choice([0, 10, 300, 20_000, 200_000])] * dice.randrange(1, 3)
            for _ in range(dice.randrange(100))
        ]
        made = list(batches(messages))
        assert b"".join(b"".join(batch.buffers) for batch in made) == b"".join(
            message(*frames) for frames in messages
        )
        assert sum(batch.messages for batch in made) == len(messages)
        for batch in made:
            assert batch.octets == sum(map(len, batch.buffers))
            assert batch.octets <= limits.SENT_OCTETS or batch.messages == 1


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_small_messages_are_few_batches(size: int):
    messages = [[b"x" * size]] * 20_000
    made = list(batches(messages))
    fit = min(limits.SENT_MESSAGES, limits.SENT_OCTETS // (size + 9))
    assert len(made) <= 2 * 20_000 // fit + 2
    assert max(batch.messages for batch in made) <= limits.SENT_MESSAGES


def test_small_messages_behind_large_ones_go_together_again():
    messages = [[b"x" * 1_000_000]] * 10 + [[b"x"]] * 20_000
    assert len(list(batches(messages))) < 60
