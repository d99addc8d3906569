"""How modules of ``kafka`` are found below ``compat.kafka``; ``test_parity.py`` is about their content."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import kafka
import kafka.errors
import pytest

import compat.kafka


def test_an_exception_of_either_package_is_caught_by_the_other() -> None:
    from compat.kafka.errors import KafkaTimeoutError

    with pytest.raises(kafka.errors.KafkaError):
        raise KafkaTimeoutError("late")


def test_structures_are_equal_and_pickle_under_their_own_name() -> None:
    ours = compat.kafka.TopicPartition("t", 1)
    assert ours == kafka.TopicPartition("t", 1)
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_importing_through_the_facade_leaves_kafka_pythons_modules_as_they_are() -> None:
    importlib.import_module("compat.kafka.errors")
    assert kafka.errors.__spec__.name == "kafka.errors"
    assert kafka.errors.__name__ == "kafka.errors"


def test_a_module_that_kafka_python_does_not_have_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"compat\.kafka\.nothing"):
        importlib.import_module("compat.kafka.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        compat.kafka.nothing  # noqa: B018


def test_submodules_can_be_imported_first() -> None:
    code = "from compat.kafka.coordinator.assignors.range import RangePartitionAssignor as Range;"
    code += "print(Range.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "kafka.coordinator.assignors.range"
