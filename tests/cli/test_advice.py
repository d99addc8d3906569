"""What to do about errors of Kafka's protocol."""

from __future__ import annotations

import pytest
from kafka import errors

from dafka.broker.looking.outcomes import RefusedError
from dafka.cli import advice


def test_every_error_with_advice_is_one_of_kafkas():
    assert all(issubclass(getattr(errors, name), errors.KafkaError) for name in advice._ADVICE)


def test_advice_stands_behind_the_error():
    refused = RefusedError("topic t: UnknownTopicOrPartitionError", ["UnknownTopicOrPartitionError"])
    said = advice.advised(refused)
    assert said.startswith("topic t: UnknownTopicOrPartitionError; `dafka kafka topics list` shows")
    assert "--authorizer" in advice.advised(errors.SecurityDisabledError("none"))


def test_several_refusals_have_the_advice_once_in_a_line_behind_them():
    names = ["GroupIdNotFoundError", "GroupIdNotFoundError"]
    lines = advice.advised(RefusedError("a: 1\nb: 2", names)).splitlines()
    assert lines[:2] == ["a: 1", "b: 2"] and len(lines) == 3


def test_text_that_is_not_utf_8_is_named():
    with pytest.raises(UnicodeEncodeError) as caught:
        "or\udcffders".encode()
    assert advice.advised(caught.value) == r"'or\udcffders' is not UTF-8"


def test_others_are_told_as_they_are():
    assert advice.advised(ValueError("no.")) == "no."
