"""The package ``kafka`` without its clients, for a process that is nothing but a broker.

The broker takes errors and message layouts from kafka-python, and importing ``kafka.errors`` runs
``kafka/__init__.py`` first: producer, consumer, admin client and all that they need, a third of the time that
``dafka broker`` takes to start. Only the ``dafka`` program does this, never a library in somebody's process.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

NAME = "kafka"


class _Package(ModuleType):
    """Its submodules can be imported; it runs itself when it is asked for a name of its own."""

    def __getattr__(self, name: str) -> Any:
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer() -> None:
    """Have ``kafka/__init__.py`` run when a name of it is used first, and not with the first submodule."""
    spec = find_spec(NAME) if NAME not in sys.modules else None
    if spec is not None:
        package = module_from_spec(spec)
        package.__class__ = _Package
        sys.modules[NAME] = package
