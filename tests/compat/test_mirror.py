"""Every import that works from ``kafka`` works from ``compat.kafka``."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import subprocess
import sys

import kafka
import kafka.errors
import pytest

import compat.kafka

# Not modules to import: scripts that run on import, measurements, and one that exists only on Windows.
LEFT_OUT = ("__main__", "benchmarks", "sspi")

MODULES = [
    module.name
    for module in pkgutil.walk_packages(kafka.__path__, "kafka.")
    if not any(word in module.name for word in LEFT_OUT)
]
REPLACED = {
    "kafka.admin",
    "kafka.admin.client",
    "kafka.consumer",
    "kafka.consumer.group",
    "kafka.producer",
    "kafka.producer.kafka",
}


@pytest.mark.parametrize("name", ["kafka", *MODULES])
def test_module_has_every_name_of_its_counterpart(name: str) -> None:
    try:
        theirs = importlib.import_module(name)
    except ImportError:
        pytest.skip("not importable from kafka-python either")
    ours = importlib.import_module(f"compat.{name}")
    missing = [one for one in dir(theirs) if not one.startswith("__") and not hasattr(ours, one)]
    assert not missing
    if name not in REPLACED and name != "kafka":
        assert ours is theirs


def test_our_modules_export_what_their_counterparts_export() -> None:
    for name in ("kafka", "kafka.admin", "kafka.consumer", "kafka.producer"):
        theirs, ours = importlib.import_module(name), importlib.import_module(f"compat.{name}")
        assert set(ours.__all__) - {"__version__"} == set(theirs.__all__)


def test_the_three_clients_are_ours() -> None:
    for name in ("KafkaProducer", "KafkaConsumer", "KafkaAdminClient"):
        assert getattr(compat.kafka, name) is not getattr(kafka, name)
        assert getattr(compat.kafka, name).__module__.startswith("compat.kafka.")


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
