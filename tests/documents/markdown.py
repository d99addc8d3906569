"""The project's documents: their code blocks, links and headings.

A comment in front of a code block says how the block is run, where that is not by itself::

    <!-- not run: the reason -->
    <!-- run as a test -->              with pytest
    <!-- run with a broker -->          at the address that the block names, 127.0.0.1:9092
    <!-- run with a tower -->           at the addresses of the C daemon, ports 5556 and 5557 on loopback
    <!-- run with ZPER -->              with a server at the addresses of ZPER, ports 5555 to 5559 on loopback
    <!-- run with Spark -->             in the session of tests/spark
    <!-- run with JeroMQ -->            by tests/zper/foreign
    <!-- run after the block above -->  in the same process, behind it
    <!-- run until: TEXT -->            and then Ctrl-C, because it does not end by itself
    <!-- run instead: COMMAND -->       something smaller
    <!-- step -->                       of a walk-through: behind the steps before it, in the same folder
    <!-- step that stays until: TEXT --> and goes on in the background when it has printed that
    <!-- step in Java -->               with Kafka's own tools, where they can be had
    <!-- step in Spark -->              in the session of tests/spark
    <!-- kept as app.py -->             not run, but there for the other blocks of the document
    <!-- before: CODE --> run in front of the block; the reader's own files and settings

Several may stand in front of one block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FOLDERS = (".github", "compat", "dafka", "examples", "scripts", "tests")

_FENCE = re.compile(r"^```(\w*)\s*$")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.*?) *$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_INLINE = re.compile(r"(`+)(.+?)\1")


class Block(NamedTuple):
    """A code block: where it begins, its language, and the directives in front of it."""

    document: Path
    line: int
    language: str
    text: str
    directives: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    def told(self, directive: str) -> str | None:
        """What follows this directive, "" if nothing; None without it."""
        for one in self.directives:
            if one.startswith(directive):
                return one[len(directive) :].lstrip(":").strip("\n").strip() or ""
        return None


def documents() -> list[Path]:
    below = (path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *below])


@cache
def blocks(document: Path) -> tuple[Block, ...]:
    return tuple(_blocks(document))


def _blocks(document: Path) -> Iterator[Block]:
    lines = document.read_text().split("\n")
    directives: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.startswith("<!--"):
            first = number
            while "-->" not in lines[number]:
                number += 1
            comment = _COMMENT.fullmatch("\n".join(lines[first : number + 1]).strip())
            assert comment, f"{document}:{first + 1}: nothing may stand behind a comment"
            directives.append(comment[1].strip(" "))
        elif fence := _FENCE.match(line):
            first = number
            number += 1
            while lines[number].strip() != "```":
                number += 1
            text = "\n".join(lines[first + 1 : number]) + "\n"
            yield Block(document, first + 1, fence[1], text, tuple(one.lstrip() for one in directives))
            directives = []
        elif line.strip():
            assert "```" not in line, f"{document}:{number + 1}: a fence that is not understood"
            directives = []
        number += 1


def _prose(document: Path) -> str:
    text = document.read_text()
    for block in blocks(document):
        text = text.replace(f"```{block.language}\n{block.text}```\n", "", 1)
    return _COMMENT.sub("", text)


def links(document: Path) -> list[str]:
    return _LINK.findall(_INLINE.sub("", _prose(document)))


def inline_code(document: Path) -> list[str]:
    return [code for _, code in _INLINE.findall(_prose(document))]


@cache
def anchors(document: Path) -> frozenset[str]:
    """The names that GitHub gives the headings of a document."""
    found: dict[str, int] = {}
    names = set()
    for line in _prose(document).split("\n"):
        if heading := _HEADING.match(line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = found[name] = found.get(name, -1) + 1
            names.add(f"{name}-{count}" if count else name)
    return frozenset(names)
