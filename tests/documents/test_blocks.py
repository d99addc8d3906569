"""Every code block of the documents is run, or says why not."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from documents.markdown import Block, blocks, documents
from documents.running import run

BLOCKS = [block for document in documents() for block in blocks(document)]
NOT_RUN = 17  # blocks; a further one is a decision

DIRECTIVES = re.compile(
    r"not run: |run as a test$|run with a (broker|tower)$|run with (Spark|JeroMQ|ZPER)$|"
    r"run after the block above$|run until: |run instead: |kept as |before:|"
    r"step( that stays until: .*| in (Java|Spark))?$"
)
LANGUAGES = {"python", "sh", "console", "diff", "java", "text"}


def is_run(block: Block) -> bool:
    elsewhere = ("not run", "kept as", "run with Spark", "run with JeroMQ", "step")
    return block.language != "text" and all(block.told(one) is None for one in elsewhere)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_block_has_a_language_and_directives_that_are_known(block: Block):
    assert block.language in LANGUAGES
    assert [one for one in block.directives if not DIRECTIVES.match(one)] == []


@pytest.mark.parametrize("block", [one for one in BLOCKS if is_run(one)], ids=lambda block: block.name)
def test_a_block_does_what_the_document_says(block: Block, tmp_path):
    run(block, tmp_path)


def test_blocks_that_are_not_run_are_few_and_give_a_reason():
    reasons = {block.name: reason for block in BLOCKS if (reason := block.told("not run")) is not None}
    assert all(len(reason.split()) > 3 for reason in reasons.values()), reasons
    assert len(reasons) == NOT_RUN, reasons


def test_blocks_of_spark_are_run_with_the_other_tests_of_spark():
    languages = Counter(block.language for block in BLOCKS if block.told("run with Spark") is not None)
    assert set(languages) <= {"python"}
