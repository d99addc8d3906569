"""Regular expressions of clients: what ``re`` says, and never longer than their lengths allow."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest

from dafka.broker.wire.patterns import Pattern, PatternError


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "payments",
        "pay.*1",
        "a|b|",
        "(a|b)*c",
        "(?:ab)+",
        "(a*)*b",
        "(a+)+",
        "a{2}",
        "a{1,}b",
        "a{0,2}b?",
        "(a|ab)(c|bcd)*",
        "a*?b+?",
        "[ab]+[^c]",
        r"\w\d*",
        r"[]a]b",
        r"[^]a]\.",
        r"[\]b]*",
        "^a$",
        "^a|b$",
        "a^b",
        "(^a|b)*$",
        "(a$|b)c?",
        "}]",
    ],
)
def test_it_matches_what_re_matches(expression: str):
    pattern, wanted = Pattern(expression), re.compile(expression)
    texts = ["".join(text) for length in range(5) for text in product("abc", repeat=length)]
    texts += ["payments", "pay1", "pay-me-1", "pay-me", "a1", "b.", "a.", "]b", "]]", "a12", "}]", "\n"]
    for text in texts:
        assert pattern.matches(text, nothing) is (wanted.fullmatch(text) is not None), text


@pytest.mark.parametrize("seed", range(20))
def test_it_matches_what_re_matches_whatever_the_expression(seed: int):
    random = Random(seed)

    def expression(depth: int) -> str:
        kind = random.randrange(7 if depth else 2)
        if kind < 2:
            return random.choice(["a", "b", ".", "[ab]", "[^a]", r"\w", "ab"])
        if kind == 2:
            return f"({expression(depth - 1)}|{expression(depth - 1)})"
        if kind < 5:
            return expression(depth - 1) + expression(depth - 1)
        return f"(?:{expression(depth - 1)})" + random.choice(["*", "+", "?", "{2}", "{1,2}", "{1,}"])

    for _ in range(10):
        text = expression(3)
        pattern, wanted = Pattern(text), re.compile(text)
        for length in range(5):
            for characters in product("abc", repeat=length):
                one = "".join(characters)
                assert pattern.matches(one, nothing) is (wanted.fullmatch(one) is not None), (text, one)


@pytest.mark.parametrize("expression", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)(.*)(.*)b"])
def test_expressions_that_match_in_many_ways_take_no_time(expression: str):
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1

    assert Pattern(expression).matches("a" * 30_000 + "b", pause)
    assert not Pattern(expression).matches("a" * 30_000, pause)
    assert pauses >= 20  # and others have their turn meanwhile


@pytest.mark.parametrize(
    "expression",
    [
        "(",
        ")",
        "a)",
        "(a",
        "*",
        "+a",
        "a**",
        "[a",
        "[b-a]",
        "\\",
        "(?i)a",
        "(?=a)",
        r"(a)\1",
        r"\ba",
        "a{2,1}",
        "a{1001}",
        "((a{100}){100}){100}",
        "(" * 100 + ")" * 100,
    ],
)
def test_what_is_none_or_not_understood_is_refused(expression: str):
    with pytest.raises(PatternError):
        Pattern(expression)
