"""Stretches of code in which the interpreter changes to no other thread and looks for no signal."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

_BREAKS = ("CALL", "JUMP_BACKWARD", "FOR_ITER", "SEND", "YIELD", "RESUME", "IMPORT", "LOAD_GLOBAL")


def stretch_of(function: Callable[..., Any], first: str, behind: str) -> None:
    """Assert that the lines of a function, from the one that begins with ``first`` to the next one that
    begins with ``behind``, are such a stretch, in which something is added and kept."""
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 does not say where an instruction is from")
    lines, number = inspect.getsourcelines(function)
    stripped = [line.strip() for line in lines]
    begin = next(place for place, line in enumerate(stripped) if line.startswith(first))
    end = next(place for place, line in enumerate(stripped) if place > begin and line.startswith(behind))
    names: list[str] = []
    line = 0
    for instruction in dis.get_instructions(function):
        line = (instruction.positions.lineno if instruction.positions else None) or line
        if number + begin <= line < number + end:
            names.append(instruction.opname)
    assert {"STORE_ATTR", "BINARY_OP"} < set(names)
    assert not [name for name in names if name.startswith(_BREAKS)]
