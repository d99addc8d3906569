"""Tables of the documents say what the code says, and each other's figures."""

from __future__ import annotations

import inspect
import re

from documents.markdown import ROOT

from dafka import Broker
from dafka.broker.server.table import BY_KEY

PRODUCE = (3, 13)  # what is answered; it is announced from 0 on, which the document says below the table


def test_the_table_of_apis_is_the_listeners():
    text = (ROOT / "dafka" / "broker" / "README.md").read_text()
    section = re.search(r"^## APIs\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in section.split("\n") if "|" in row]
    found = {}
    for left, left_versions, _, right, right_versions in rows[2:]:
        for names, versions in ((left, left_versions), (right, right_versions)):
            if not names:
                continue
            spans = [tuple(map(int, one.split("-"))) for one in versions.split(", ")]
            names = names.split(", ")
            for name, span in zip(names, spans * len(names) if len(spans) == 1 else spans, strict=True):
                found[name] = (span[0], span[-1])
    assert found == {api.name: (api.first, api.last) for api in BY_KEY.values()} | {"Produce": PRODUCE}


def test_the_table_of_arguments_is_that_of_the_broker():
    text = (ROOT / "dafka" / "broker" / "README.md").read_text()
    section = re.search(r"^\| argument \|.*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
    arguments = [row.split(" | ")[0] for row in section.split("\n| ")]
    named = re.findall(r"`(\w+)`", " ".join(arguments))
    assert sorted(named) == sorted(inspect.signature(Broker).parameters.keys() - {"path"})


def test_figures_of_the_top_document_are_those_of_the_whole_tables():
    text = (ROOT / "README.md").read_text()
    section = re.search(r"^## Figures\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
    tables = (ROOT / "scripts" / "README.md").read_text()
    figures = [one for row in section.split("\n| ")[2:] for one in re.findall(r"\d[\d ]*(?:\.\d+)?", row)]
    assert len(figures) > 30
    assert [one for one in figures if one.strip() not in tables] == []
