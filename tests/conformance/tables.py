"""The tables of this folder's README, made from the rules: ``python -m tests.conformance.tables``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .rules import BEYOND, RULES

README = Path(__file__).parent / "README.md"
_TABLE = re.compile(r"(<!-- made by tables.py: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def with_tables(text: str) -> str:
    """A text with its tables as the rules have them now."""
    made = {"rules": _rules(), "notes": _notes()}
    return _TABLE.sub(lambda found: f"{found[1]}\n{made[found[2]]}\n{found[3]}", text)


def _rules() -> str:
    rows = ((rule.section, rule.sentence, "[`{1}`]({0})".format(*rule.test.split("::"))) for rule in RULES)
    return _table(("section", "rule", "test"), rows)


def _notes() -> str:
    notes = dict.fromkeys((rule.section, rule.note) for rule in RULES if rule.note)
    return _table(("section", "what we do"), (*notes, *BEYOND))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for line in (_row(head), "|" + "---|" * len(head), *map(_row, rows)))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text()))
