"""Everything public in the installed kafka-python is here, with the same shape.

A new release of kafka-python that adds a method, an argument, a configuration key, a module or an exception
makes these tests say which. Intended differences are listed in :data:`DIFFERENCES`, each with its reason.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import kafka
import kafka.errors
import pytest

import compat.kafka

CLIENTS = ("KafkaProducer", "KafkaConsumer", "KafkaAdminClient")

# Methods that Python calls by itself. Others with underscores are kafka-python's own business.
SPECIAL = {"__init__", "__enter__", "__exit__", "__iter__", "__next__", "__str__", "__repr__", "__del__"}

# Not modules to import: scripts that run on import, measurements, and one that exists only on Windows.
LEFT_OUT = ("__main__", "benchmarks", "sspi")

MODULES = [
    "kafka",
    *(
        module.name
        for module in pkgutil.walk_packages(kafka.__path__, "kafka.")
        if not any(word in module.name for word in LEFT_OUT)
    ),
]

# Modules that are files of ours; all others below compat.kafka are kafka-python's own objects.
OURS = {
    "kafka",
    "kafka.admin",
    "kafka.admin.client",
    "kafka.consumer",
    "kafka.consumer.group",
    "kafka.producer",
    "kafka.producer.kafka",
}

# What is public here and not in kafka-python, or the other way round: the reason.
DIFFERENCES = {
    "kafka.install": "answers the name kafka with this facade, which kafka-python has no need of",
    "kafka.uninstall": "takes that back",
    "kafka.producer.kafka.Sender": "what sends for a producer is a green thread of ours",
    "kafka.__all__: __version__": "kafka-python has the name and does not export it",
}


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_") or name in SPECIAL}


def members(name: str) -> list[tuple[str, str]]:
    return [(name, member) for member in sorted(public(dir(getattr(kafka, name))))]


def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"not importable from kafka-python either: {error}")


# -- the clients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_has_the_methods_of_kafka_pythons_and_no_others(name: str) -> None:
    ours, theirs = getattr(compat.kafka, name), getattr(kafka, name)
    assert public(dir(ours)) == public(dir(theirs))


@pytest.mark.parametrize(("name", "member"), [pair for name in CLIENTS for pair in members(name)])
def test_a_method_has_the_parameters_of_kafka_pythons(name: str, member: str) -> None:
    ours, theirs = getattr(compat.kafka, name), getattr(kafka, name)
    assert type(inspect.getattr_static(ours, member)) is type(inspect.getattr_static(theirs, member))
    if callable(getattr(theirs, member)):
        assert shape(getattr(ours, member)) == shape(getattr(theirs, member))


def shape(method: Any) -> Any:
    try:
        signature = inspect.signature(method)
    except ValueError:
        return None  # a slot of object's
    return [(one.name, one.kind, one.default) for one in signature.parameters.values()]


@pytest.mark.parametrize("name", CLIENTS)
def test_annotated_results_are_the_same(name: str) -> None:
    ours, theirs = getattr(compat.kafka, name), getattr(kafka, name)
    for member in public(dir(theirs)):
        annotation = getattr(getattr(theirs, member), "__annotations__", {}).get("return")
        if annotation is not None:
            assert getattr(ours, member).__annotations__["return"] == annotation, member


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_has_the_configuration_of_kafka_pythons(name: str) -> None:
    ours, theirs = getattr(compat.kafka, name).DEFAULT_CONFIG, getattr(kafka, name).DEFAULT_CONFIG
    assert set(ours) == set(theirs)
    differing = {key for key in ours if ours[key] is not theirs[key] and ours[key] != theirs[key]}
    assert not differing


def test_deprecated_configuration_is_the_same() -> None:
    assert compat.kafka.KafkaProducer.DEPRECATED_CONFIGS == kafka.KafkaProducer.DEPRECATED_CONFIGS


def test_the_three_clients_are_ours() -> None:
    for name in CLIENTS:
        assert getattr(compat.kafka, name) is not getattr(kafka, name)
        assert getattr(compat.kafka, name).__module__.startswith("compat.kafka.")


# -- modules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_every_name_of_its_counterpart(name: str) -> None:
    theirs = module(name)
    ours = importlib.import_module(f"compat.{name}")
    missing = [one for one in dir(theirs) if not one.startswith("__") and not hasattr(ours, one)]
    assert not missing
    if name not in OURS:
        assert ours is theirs


@pytest.mark.parametrize("name", sorted(OURS))
def test_names_in_our_modules_are_kafka_pythons_except_for_the_clients(name: str) -> None:
    theirs, ours = module(name), importlib.import_module(f"compat.{name}")
    replaced = {
        one
        for one in dir(theirs)
        if not one.startswith("_") and not inspect.ismodule(getattr(theirs, one))
        if getattr(ours, one) is not getattr(theirs, one)
    }
    allowed = {one.rpartition(".")[2] for one in DIFFERENCES if one.startswith(f"{name}.")}
    assert replaced <= {*CLIENTS, "log"} | allowed


@pytest.mark.parametrize("name", ["kafka", "kafka.admin", "kafka.consumer", "kafka.producer"])
def test_a_package_exports_the_names_of_its_counterpart(name: str) -> None:
    theirs, ours = importlib.import_module(name), importlib.import_module(f"compat.{name}")
    listed = {one for one in ours.__all__ if f"{name}.__all__: {one}" not in DIFFERENCES}
    assert listed == set(theirs.__all__)
    taken: dict[str, Any] = {}
    exec(f"from compat.{name} import *", taken)
    assert set(theirs.__all__) <= taken.keys()


def test_additions_of_the_facade_are_listed() -> None:
    own = {
        name
        for name, value in vars(compat.kafka).items()
        if not name.startswith("_") and not inspect.ismodule(value) and not hasattr(kafka, name)
    }
    assert own - {"annotations"} == {
        name.removeprefix("kafka.") for name in DIFFERENCES if name.count(".") == 1 and ":" not in name
    }


# -- exceptions and structures -----------------------------------------------------------------------


def test_every_exception_is_kafka_pythons_own_class() -> None:
    ours = importlib.import_module("compat.kafka.errors")
    errors = [
        name
        for name, value in vars(kafka.errors).items()
        if inspect.isclass(value) and issubclass(value, BaseException)
    ]
    assert len(errors) > 100
    assert all(getattr(ours, name) is getattr(kafka.errors, name) for name in errors)


@pytest.mark.parametrize("name", ["structs", "serializer", "partitioner", "coordinator.assignors.abstract"])
def test_classes_that_programs_derive_from_or_compare_with_are_kafka_pythons_own(name: str) -> None:
    theirs, ours = importlib.import_module(f"kafka.{name}"), importlib.import_module(f"compat.kafka.{name}")
    assert vars(ours) == vars(theirs)
