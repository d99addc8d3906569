"""Regular expressions of clients, matched in a time that the lengths of text and expression bound.

Python's ``re`` goes back and tries again where an expression can match in several ways: ``(a+)+b`` takes it
twice as long for each further ``a`` of a text without a ``b``, and nothing else runs meanwhile. Kafka's
broker has RE2, which follows all ways at the same time, and so does this: an expression becomes a network of
states, and each character of a text leads from one set of states to the next. What was found out about sets
is remembered.

Understood is what both ``re`` and RE2 understand: characters, ``.``, classes, escapes, groups, alternatives,
quantifiers, ``^`` and ``$``. Single characters are left to ``re``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dafka.protocol.errors import DafkaError

STATES = 1000  # of one expression; RE2 repeats nothing more than 1000 times
DEPTH = 50  # of groups in groups
STEPS_REMEMBERED = 10_000
PAUSE_AFTER = 2000  # states that are looked at before others have their turn

_CHARACTER = re.compile(r"\[\^?\]?(?:\\.|[^\\\]])*\]|\\.|[^()|*+?\\\[]", re.DOTALL)
_QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d{1,4})(?:(,)(\d{0,4}))?\})\??")
_ASSERTIONS = (r"\A", r"\b", r"\B", r"\Z")  # that match no character
_BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}

Test = Callable[[str], object]
States = frozenset[int]


class PatternError(DafkaError):
    """What is no regular expression, or one that is not understood."""


class Pattern:
    """A regular expression. Raises PatternError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0
        self._tests: list[Test | None] = []  # of a character that leads on; None: leads on without one
        self._next: list[list[int]] = []
        self._begin: set[int] = set()  # states that only the text's begin gets past
        self._end: set[int] = set()
        self._matched = self._state(None, [])
        self._start = self._build(self._alternatives(), self._matched)
        if self._position < len(text):
            raise PatternError(f"{text!r}: nothing to close at {self._position}")
        self._steps: dict[tuple[States, str], States] = {}
        self._work = 0

    def matches(self, text: str, pause: Callable[[], object]) -> bool:
        """Whether the whole text is an instance of it. Calls ``pause`` now and then."""
        states = self._reached([self._start], begin=True, end=not text)
        last = len(text) - 1
        for position, character in enumerate(text):
            end = position == last
            key = (states, "" if end else character)
            following = None if end else self._steps.get(key)
            if following is None:
                led = []
                for state in states:
                    test = self._tests[state]
                    if test is not None and test(character):
                        led += self._next[state]
                following = self._reached(led, end=end)
                if not end:
                    if len(self._steps) >= STEPS_REMEMBERED:
                        self._steps.clear()
                    self._steps[key] = following
                self._work += len(states) + len(following)
            self._work += 1
            if self._work > PAUSE_AFTER:
                self._work = 0
                pause()
            if not following:
                return False
            states = following
        return self._matched in states

    def _reached(self, states: list[int], *, begin: bool = False, end: bool = False) -> States:
        """These states, and those behind them that need no character."""
        reached: set[int] = set()
        left = list(states)
        while left:
            state = left.pop()
            if state in reached:
                continue
            reached.add(state)
            passes = (begin or state not in self._begin) and (end or state not in self._end)
            if self._tests[state] is None and passes:
                left += self._next[state]
        return frozenset(reached)

    # -- from the expression to states, from its end to its begin -------------------------------

    def _state(self, test: Test | None, following: list[int]) -> int:
        if len(self._next) >= STATES:
            raise PatternError(f"{self._text!r} has more than {STATES} states")
        self._tests.append(test)
        self._next.append(following)
        return len(self._next) - 1

    def _build(self, node: Node, after: int) -> int:
        """The state in front of a node that leads to ``after``."""
        if isinstance(node, Concatenation):
            for part in reversed(node.parts):
                after = self._build(part, after)
            return after
        if isinstance(node, Alternation):
            return self._state(None, [self._build(part, after) for part in node.parts])
        if isinstance(node, Repetition):
            return self._build_repeated(node, after)
        if isinstance(node, str):
            state = self._state(None, [after])
            (self._begin if node == "^" else self._end).add(state)
            return state
        return self._state(node.fullmatch, [after])

    def _build_repeated(self, node: Repetition, after: int) -> int:
        if node.most is None:
            start = self._state(None, [after])
            self._next[start].append(self._build(node.part, start))
        else:
            start = after
            for _ in range(node.most - node.least):
                start = self._state(None, [self._build(node.part, start), after])
        for _ in range(node.least):
            start = self._build(node.part, start)
        return start

    # -- from the text to an expression ---------------------------------------------------------

    def _alternatives(self) -> Node:
        parts: list[Node] = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alternation(parts)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._position < len(self._text) and self._text[self._position] not in "|)":
            part = self._atom()
            quantifier = _QUANTIFIER.match(self._text, self._position)
            if quantifier is not None:
                self._position = quantifier.end()
                part = self._repeated(part, quantifier)
            parts.append(part)
        return Concatenation(parts)

    def _repeated(self, part: Node, quantifier: re.Match[str]) -> Node:
        sign, least, comma, most = quantifier.groups()
        if sign:
            return Repetition(part, *_BOUNDS[sign])
        low = int(least)
        high = low if not comma else int(most) if most else None
        if max(low, high or 0) > STATES or (high is not None and high < low):
            raise PatternError(f"{self._text!r}: {quantifier[0]} is no quantifier")
        return Repetition(part, low, high)

    def _atom(self) -> Node:
        if self._take("("):
            if self._text.startswith("?", self._position) and not self._take("?:"):
                raise PatternError(f"{self._text!r}: (?: is the only group with a question mark")
            self._depth += 1
            if self._depth > DEPTH:
                raise PatternError(f"{self._text!r}: more than {DEPTH} groups in each other")
            found = self._alternatives()
            self._depth -= 1
            if not self._take(")"):
                raise PatternError(f"{self._text!r}: a group is not closed")
            return found
        character = _CHARACTER.match(self._text, self._position)
        if character is None or character[0] in _ASSERTIONS:
            raise PatternError(f"{self._text!r}: not understood from {self._position} on")
        self._position = character.end()
        if character[0] in ("^", "$"):
            return character[0]
        try:
            return re.compile(character[0])
        except re.error as error:
            raise PatternError(f"{self._text!r}: {error}") from error

    def _take(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._position):
            return False
        self._position += len(sign)
        return True


class Concatenation:
    """One part behind the other."""

    def __init__(self, parts: list[Node]) -> None:
        self.parts = parts


class Alternation:
    """One of the parts."""

    def __init__(self, parts: list[Node]) -> None:
        self.parts = parts


class Repetition:
    """A part so many times; ``most`` is None where there is no end."""

    def __init__(self, part: Node, least: int, most: int | None) -> None:
        self.part = part
        self.least = least
        self.most = most


Node = Concatenation | Alternation | Repetition | str | re.Pattern[str]
