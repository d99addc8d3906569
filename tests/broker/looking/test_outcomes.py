"""What a broker refuses, in words."""

from __future__ import annotations

import pytest
from kafka.errors import GroupIdNotFoundError, InvalidTopicError

from dafka.broker.interface.consumer_groups import ConsumerGroupDescription
from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.records import ListedOffset
from dafka.broker.looking.outcomes import RefusedError, check, printable


def test_refused_items_are_named_a_line_each():
    check({"a": Outcome(None), "b": None})
    with pytest.raises(RefusedError) as raised:
        check({("t", 1): InvalidTopicError, "b": Outcome(InvalidTopicError, "why\x1b")})
    assert str(raised.value) == "t-1: InvalidTopicError\nb: InvalidTopicError: why\\x1b"
    assert raised.value.names == ("InvalidTopicError", "InvalidTopicError")


def test_answers_are_refused_with_the_detail_that_they_have():
    check({"t-0": ListedOffset(None), "g": ConsumerGroupDescription(None)})
    found = {
        "t-0": ListedOffset(InvalidTopicError),
        "g": ConsumerGroupDescription(GroupIdNotFoundError, "Group g not found."),
        "h": ConsumerGroupDescription(GroupIdNotFoundError),
    }
    with pytest.raises(RefusedError) as raised:
        check(found)
    assert str(raised.value).splitlines() == [
        "t-0: InvalidTopicError",
        "g: GroupIdNotFoundError: Group g not found.",
        "h: GroupIdNotFoundError",
    ]


def test_control_characters_are_escaped():
    assert printable("\x1b[2Jé ü\n") == "\\x1b[2Jé ü\\n"
