"""``kafka`` answered by this facade, for programs whose source is not to be touched.

Everything below ``compat.kafka`` but the three clients *is* kafka-python's (see :mod:`compat.kafka._mirror`),
so little has to be exchanged: :func:`install` puts our three classes in the place of kafka-python's in every
module that has them as a global, those of kafka-python first of all. Its modules stay what they are. So
``import kafka``, ``from kafka.errors import KafkaError`` and ``mock.patch("kafka.KafkaProducer")`` mean what
they meant, and it does not matter whether something was imported before or comes after.

Out of reach are: a class that was derived from one of kafka-python's clients before (an error says
which), instances that exist, and references other than a module's globals, such as a default argument or an
entry in a dictionary. Other processes are not reached either, those started by ``multiprocessing`` included:
each has to call :func:`install` itself.
"""

from __future__ import annotations

import sys
from types import ModuleType

import kafka.admin.client
import kafka.consumer.group
import kafka.producer.kafka

from compat.kafka.admin.client import KafkaAdminClient
from compat.kafka.consumer.group import KafkaConsumer
from compat.kafka.producer.kafka import KafkaProducer
from dafka.protocol.errors import DafkaError

_OURS: dict[type, type] = {
    kafka.admin.client.KafkaAdminClient: KafkaAdminClient,
    kafka.consumer.group.KafkaConsumer: KafkaConsumer,
    kafka.producer.kafka.KafkaProducer: KafkaProducer,
}

_THEIRS = {id(theirs): theirs for theirs in _OURS}

_exchanged: list[tuple[ModuleType, str, type]] = []  # where, and what was there


class InstallError(DafkaError, RuntimeError):
    """It is too late to answer ``kafka``: there are classes derived from kafka-python's clients."""


def _derived(theirs: type) -> list[type]:
    return theirs.__subclasses__()


def install() -> None:
    """Have ``kafka`` give this facade's clients, in this process, from now on.

    A second call covers modules that were loaded in between by other ways than an import of ``kafka``.

    Raises:
        InstallError: classes derived from kafka-python's clients exist. Nothing has changed then; call it
            before the modules are imported that define them.
    """
    late = sorted(
        f"{derived.__module__}.{derived.__qualname__}"
        for theirs in _OURS
        for derived in _derived(theirs)
        if not _is_within(derived.__module__, "kafka") and not _is_within(derived.__module__, "compat.kafka")
    )
    if late:
        raise InstallError(
            f"derived from kafka-python's clients already: {', '.join(late)}; call compat.kafka.install() "
            f"before importing them"
        )
    for name, module in list(sys.modules.items()):
        # Ours need theirs where they derive from them. (Those modules that are kafka-python's under our
        # name come by their own, too.)
        if issubclass(type(module), ModuleType) and not _is_within(name, "compat.kafka"):
            _exchange(module)


def uninstall() -> None:
    """Undo :func:`install`; does nothing without one.

    Modules that imported a client in between keep the facade's, as they would keep any imported name.
    """
    while _exchanged:
        module, attribute, theirs = _exchanged.pop()
        if getattr(module, attribute, None) is _OURS[theirs]:
            setattr(module, attribute, theirs)


def _exchange(module: ModuleType) -> None:
    # Modules and the objects in them may be lazy ones, which wake up when they are asked for anything, be it
    # their class. So only identities are looked at.
    names = object.__getattribute__(module, "__dict__")
    for attribute, value in list(names.items()):
        theirs = _THEIRS.get(id(value))
        if theirs is not None:
            _exchanged.append((module, attribute, theirs))
            names[attribute] = _OURS[theirs]


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
