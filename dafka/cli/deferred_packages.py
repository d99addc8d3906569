"""Defers the ``__init__`` of packages that import far more than a broker needs.

The broker takes errors and message layouts from kafka-python, but importing ``kafka.errors`` runs
``kafka/__init__.py`` first: producer, consumer, admin client and all that they need; and the packages of its
protocol make the classes of all messages. crc32c comes with a command line, and with all of
``importlib.metadata`` to read its own version, for one function of a module written in C. It is half of the
time that ``dafka broker`` would take to start. Only the ``dafka`` program does this, never a library in
somebody's process.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

# Packages, and those of their names that are had without running them, with the modules that have them.
PACKAGES: dict[str, dict[str, str]] = {
    "crc32c": {"crc32c": "crc32c._crc32c"},
    "kafka": {},
    "kafka.net": {},  # kafka.cluster needs a module of it, and its manager needs kafka.cluster
    "kafka.protocol.admin": {},
    "kafka.protocol.consumer": {},
    "kafka.protocol.metadata": {},
    "kafka.protocol.producer": {},
}


class _Package(ModuleType):
    """A package whose submodules can be imported; its ``__init__`` runs when one of its own names is used."""

    def __getattr__(self, name: str) -> Any:
        home = PACKAGES[self.__name__].get(name)
        if home is not None and find_spec(home) is not None:
            return getattr(import_module(home), name)
        if find_spec(f"{self.__name__}.{name}") is not None:  # from package import submodule
            return import_module(f"{self.__name__}.{name}")
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer() -> None:
    """Run each package's ``__init__`` on the first use of one of its names, not of a submodule."""
    for name in PACKAGES:
        spec = find_spec(name) if name not in sys.modules else None
        if spec is not None and spec.submodule_search_locations is not None:
            package = module_from_spec(spec)
            package.__class__ = _Package
            sys.modules[name] = package
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, package)  # as importing it would
