"""How every import that works from ``kafka`` works from ``compat.kafka``.

Three modules are ours: the producer, the consumer and the admin client. Everything else below
``compat.kafka`` *is* kafka-python's: a finder at the front of ``sys.meta_path`` answers
``compat.kafka.errors`` with the module object ``kafka.errors`` itself, so there is one ``KafkaError`` to
catch, one ``TopicPartition`` to compare with, and nothing to keep in step with a new release.

Our own names are not listed anywhere. A name below one of our packages is looked for among our files
first; below a package of kafka-python's it is always kafka-python's. (Without the second half the
ordinary finder would load a second copy of a file of kafka-python's under our name.)

A module of ours passes names that it does not define on to its counterpart
(:func:`counterpart_names`), so that ``from compat.kafka.producer.kafka import log`` works too.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

OURS = "compat.kafka"
THEIRS = "kafka"


def counterpart(name: str) -> str:
    """The name in kafka-python of the module that we call ``name``."""
    return THEIRS + name[len(OURS) :]


def counterpart_names(name: str) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that looks names up in the module's counterpart in kafka-python."""
    theirs = importlib.import_module(counterpart(name))

    def __getattr__(attribute: str) -> Any:
        try:
            return getattr(theirs, attribute)
        except AttributeError:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}") from None

    return __getattr__


class MirrorFinder(MetaPathFinder):
    """Finds modules below ``compat.kafka`` that are kafka-python's own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(OURS + "."):
            return None
        parent = fullname.rpartition(".")[0]
        if sys.modules[parent].__name__ == parent:
            ours = PathFinder.find_spec(fullname, path, target)
            if ours is not None:
                return ours
        theirs = importlib.util.find_spec(counterpart(fullname))
        if theirs is None:
            return None
        return ModuleSpec(
            fullname,
            MirrorLoader(theirs),
            origin=theirs.origin,
            is_package=theirs.submodule_search_locations is not None,
        )


class MirrorLoader(Loader):
    """Loads a module of kafka-python's under our name: the same object, untouched."""

    def __init__(self, theirs: ModuleSpec) -> None:
        self._theirs = theirs

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(self._theirs.name)

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put our spec on the module, which was loaded long ago by its own.
        module.__spec__ = self._theirs

    def get_code(self, fullname: str) -> Any:
        """The module's code, for ``python -m``."""
        return self._theirs.loader.get_code(self._theirs.name)  # type: ignore[union-attr]


def install() -> None:
    """Put the finder in place; a second call does nothing."""
    if not any(isinstance(finder, MirrorFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, MirrorFinder())
