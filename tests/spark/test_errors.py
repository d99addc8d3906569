"""How the errors between Spark and a broker reach the user."""

from __future__ import annotations

import os

import pytest

from dafka.protocol.errors import DafkaError
from dafka.spark import errors
from dafka.spark.errors import WriteError, reason_first

HIDDEN = "SPARK_HIDE_TRACEBACK"


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    monkeypatch.setenv(HIDDEN, "")  # restored after the test
    monkeypatch.delenv(HIDDEN)


def test_an_error_of_ours_is_reported_without_a_traceback():
    with pytest.raises(WriteError), reason_first():
        raise WriteError("the broker is full")
    assert os.environ[HIDDEN] == "1"


def test_any_other_error_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), reason_first():
        _ = 1 / 0
    assert HIDDEN not in os.environ


def test_every_error_can_be_caught_as_one_of_dafka():
    classes = [
        one for one in vars(errors).values() if isinstance(one, type) and one.__module__ == errors.__name__
    ]
    assert len(classes) >= 7
    assert all(issubclass(one, DafkaError) for one in classes)
