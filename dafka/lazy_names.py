"""Names of a package that are imported on first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    namespace: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    ``namespace``: its ``globals()``, with ``__all__``. ``homes``: for each name the module that has it.
    """
    package = namespace["__name__"]

    def get(name: str) -> object:
        try:
            home = homes[name]
        except KeyError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        # Kept in the package's namespace, so this function runs once for each name.
        value = namespace[name] = getattr(import_module(home), name)
        return value

    def names() -> list[str]:
        return sorted({*namespace, *namespace["__all__"]})

    return get, names
