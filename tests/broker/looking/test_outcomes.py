"""What a broker refuses, in words."""

from __future__ import annotations

import pytest
from kafka.errors import InvalidTopicError

from dafka.broker.interface.outcome import Outcome
from dafka.broker.looking.outcomes import RefusedError, check, printable


def test_refused_items_are_named_a_line_each():
    check({"a": Outcome(None), "b": None})
    with pytest.raises(RefusedError) as raised:
        check({("t", 1): InvalidTopicError, "b": Outcome(InvalidTopicError, "why\x1b")})
    assert str(raised.value) == "t-1: InvalidTopicError\nb: InvalidTopicError: why\\x1b"
    assert raised.value.names == ("InvalidTopicError", "InvalidTopicError")


def test_control_characters_are_escaped():
    assert printable("\x1b[2Jé ü\n") == "\\x1b[2Jé ü\\n"
