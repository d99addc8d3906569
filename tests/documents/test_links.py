"""What the documents refer to is there: files, headings, modules, commands and their options."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest
from documents.markdown import ROOT, anchors, blocks, documents, inline_code, links

from dafka.cli import main

DOCUMENTS = documents()
PATH = re.compile(r"(?:\./)?((?:\.github|compat|dafka|examples|scripts|tests)/[\w./*-]*)(?:::(\w+))?")
NAME = re.compile(r"((?:dafka|compat)(?:\.\w+)+)(?:\(.*\))?")


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_to_files_and_headings(document: Path):
    broken = []
    for link in links(document):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_document_is_found_from_the_top_one():
    found, new = set(), {ROOT / "README.md"}
    while new:
        found |= new
        files = {(one.parent / link.partition("#")[0]).resolve() for one in new for link in links(one)}
        new = {file for file in files if file in DOCUMENTS} - found
    assert sorted(found) == DOCUMENTS


def test_the_top_document_is_read_in_some_minutes():
    assert 150 <= len((ROOT / "README.md").read_text().splitlines()) <= 200


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_files_that_are_named_exist(document: Path):
    missing = []
    for code in inline_code(document):
        for path, test in PATH.findall(code.split(" ")[0] if code.startswith("./") else code):
            found = [*ROOT.glob(path.rstrip("/"))]
            if not found or (test and f"def {test}(" not in found[0].read_text()):
                missing.append(code)
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_modules_classes_and_functions_that_are_named_exist(document: Path):
    missing = [code for code in inline_code(document) if (one := NAME.fullmatch(code)) and not exists(one[1])]
    assert missing == []


def exists(dotted: str) -> bool:
    """Whether a module, or something in one, has this name."""
    if dotted.startswith("dafka.spark"):
        pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/environment spark does that")
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[end:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_commands_have_the_options_that_are_named(document: Path):
    shell = [block.text for block in blocks(document) if block.language in ("sh", "console")]
    lines = [line for text in shell for line in text.replace("\\\n", " ").splitlines()]
    found = [
        call for code in (*lines, *inline_code(document)) for call in re.findall(r"\bdafka [a-z].*", code)
    ]
    assert {call: wrong for call in found if (wrong := unknown(call))} == {}


def unknown(call: str) -> list[str]:
    """Words of a call of ``dafka`` that are neither a command nor an option."""
    words = shlex.split(re.split(r" {3,}|[|;<>]", call)[0], comments=True)[1:]
    command: click.Command = main
    context = click.Context(command)
    while isinstance(command, click.Group):
        if not words or words[0] == "COMMAND":
            return []
        step = command.get_command(context, words[0])
        if step is None:
            return words[:1]
        command, words = step, words[1:]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if word.startswith("-") and word not in {*options, "--help", "-1"}]
