"""The sections of Broker's developer guide, and the tests that carry their names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "dafka" / "overlay" / "README.md"

SECTIONS = [
    "Application-Layer Multicast",
    "Peers",
    "Timestamps",
    "Routing Tables",
    "Source Routing",
    "Subscription Flooding",
    "Publishing Data",
    "Channels",
    "Producer",
    "Consumer",
    "Channels in Data Store Actors",
    "Mapping Channel to Command Messages",
    "Cluster Setup and Testing",
    "Data Stores",
]
"""From "Application-Layer Multicast" to "Data Stores", in the guide's order."""

ROW = re.compile(r"^\| ([A-Z][^|]+) \| \[test_\w+\.py\]\((\S+)\) \|$", re.MULTILINE)


def rows() -> list[tuple[str, Path]]:
    return [
        (section, (DOCUMENT.parent / link).resolve()) for section, link in ROW.findall(DOCUMENT.read_text())
    ]


def test_the_document_has_a_row_for_each_section() -> None:
    assert [section for section, _ in rows()] == SECTIONS


@pytest.mark.parametrize(("section", "file"), rows(), ids=SECTIONS)
def test_the_tests_of_a_section_carry_its_name(section: str, file: Path) -> None:
    assert file.stem == "test_" + re.sub("[ -]", "_", section.lower())
    tree = ast.parse(file.read_text())
    assert f'"{section}"' in (ast.get_docstring(tree) or "")
    tests = [
        one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")
    ]
    assert tests
