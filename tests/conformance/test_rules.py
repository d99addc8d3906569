"""The table of rules is whole: each sentence has a test that exists and quotes it, no test lacks a rule."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from conformance.rules import RULES, Rule
from conformance.tables import README, with_tables

HERE = Path(__file__).parent
RULE_FILES = [f"test_{part}.py" for part in ("discovery", "records", "framing", "commands", "subscriptions")]
KEYWORD = re.compile(r"\b(MUST|SHALL|SHOULD|RECOMMENDED|MAY|REQUIRED|OPTIONAL)\b|octet %x01 shall follow")


def normal(text: str) -> str:
    return " ".join(text.split())


def documented_tests() -> dict[str, str]:
    """The docstring of every test of a rule, by ``file::name``."""
    return {
        f"{name}::{node.name}": normal(ast.get_docstring(node) or "")
        for name in RULE_FILES
        for node in ast.parse((HERE / name).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


TESTS = documented_tests()


@pytest.mark.parametrize("rule", RULES, ids=[rule.test.partition("::")[2] for rule in RULES])
def test_every_normative_sentence_has_a_test_that_quotes_it(rule: Rule):
    assert KEYWORD.search(rule.sentence)
    assert rule.test in TESTS
    assert normal(rule.sentence) in TESTS[rule.test]


def test_every_test_of_a_rule_is_in_the_table():
    assert sorted(TESTS) == sorted(rule.test for rule in RULES)


def test_no_sentence_is_there_twice():
    assert len({normal(rule.sentence) for rule in RULES}) == len(RULES)


def test_the_readme_has_the_tables_of_the_rules_as_they_are():
    assert README.read_text() == with_tables(README.read_text()), "run: python -m tests.conformance.tables"
    assert all(rule.sentence in README.read_text() for rule in RULES)
