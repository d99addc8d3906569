"""What the document says of itself: its keys are those of the code, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

from dafka.zper.properties import FAMILIES, KEYS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "dafka" / "zper" / "README.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))


def rows(section: str) -> list[list[str]]:
    """The cells of the tables of a section, without the heads."""
    lines = re.findall(r"^\| (.*) \|$", SECTIONS[section], re.MULTILINE)
    return [line.split(" | ") for line in lines if " | " in line][1:]


def test_the_keys_with_their_defaults_are_those_of_the_code():
    found = {cells[0].strip("`"): cells[1:] for cells in rows("Configuration")}
    expected = {}
    for name, key in KEYS.items():
        default = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
        if key.effect:
            expected[name] = [f"`{default}`", key.meaning]
    named = {f"{family}.N" for family in FAMILIES}
    assert {name: cells for name, cells in found.items() if name not in named} == expected
    assert named <= set(found) | {cells[0].split("`")[1] for cells in rows("Configuration")}


def test_keys_without_effect_are_named_with_the_reason():
    prose = SECTIONS["Configuration"].split("These are taken and change nothing")[1]
    for name, key in KEYS.items():
        assert (f"`{name}`" in prose) == (not key.effect), name


def test_the_test_of_each_line_is_there():
    last = "\n".join(cells[-1] for cells in rows("What ZPER's README says"))
    named = re.findall(r"^`((?:[\w/]+/)?test_\w+\.py)(?:::(\w+))?`$", last, re.MULTILINE)
    assert len(named) > 20
    for file, test in named:
        path = ROOT / file if file.startswith("tests/") else ROOT / "tests" / "zper" / file
        assert path.exists(), path
        assert not test or f"def {test}(" in path.read_text(), (file, test)


def test_every_section_of_zpers_readme_is_in_the_table():
    """Its headings, and the roles below Design."""
    column = " ".join(cells[0] for cells in rows("What ZPER's README says"))
    for heading in (
        *(
            "Design",
            "ZPWriter",
            "ZPReader",
            "ZPAck",
            "ZPRelay",
            "ZPController",
            "RAW format",
            "Configuration",
        ),
        *("How to run ZPER", "Write messages", "Fetch messages", "Acks", "Cluster"),
    ):
        assert heading in column
