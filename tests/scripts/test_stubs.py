"""scripts/stubs: the stub of kafka.errors is true of the installed kafka-python."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import kafka.errors

STUB = Path(__file__).resolve().parents[2] / "scripts" / "stubs" / "kafka" / "errors.pyi"


def test_every_error_of_the_stub_is_installed_with_the_same_bases() -> None:
    stubbed = {
        node.name: [ast.unparse(base) for base in node.bases]
        for node in ast.parse(STUB.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    installed = {
        name: [base.__name__ for base in kind.__bases__]
        for name, kind in inspect.getmembers(kafka.errors, inspect.isclass)
        if name in stubbed
    }
    assert stubbed == installed
