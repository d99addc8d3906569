"""Faults from a seed: a function of seed, point and number, and of nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.testing import Fault
from dafka.testing.torture.generator import IN_A_ROW, Generator
from dafka.testing.torture.kinds import KINDS, LEVELS, OPERATIONS

POINTS = [f"{operation} name-0" for operation in OPERATIONS]


def kinds(generator: Generator, point: str, calls: int = 300) -> list[str | None]:
    return [generator.kind(point, call) for call in range(1, calls + 1)]


@given(st.integers(), st.sampled_from(POINTS), st.lists(st.integers(1, 500), max_size=50))
def test_neither_the_order_of_the_questions_nor_other_points_matter(seed, point, calls):
    asked = Generator(seed, rate=0.5)
    for call in calls:
        for other in POINTS:
            asked.kind(other, call)
        assert asked.kind(point, call) == Generator(seed, rate=0.5).kind(point, call)


def test_another_process_computes_the_same():
    code = (
        "from dafka.testing.torture.generator import Generator;"
        "print([Generator(7, rate=0.5).kind('commit g', call) for call in range(1, 301)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "3", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True, timeout=200,
    )  # fmt: skip
    assert eval(done.stdout) == kinds(Generator(7, rate=0.5), "commit g")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("point", POINTS)
def test_only_faults_of_the_level_and_the_operation_and_all_of_those(level, point):
    operation = point.split()[0]
    allowed = {
        name
        for name, kind in KINDS.items()
        if operation in kind.operations
        and operation not in kind.planned
        and kind.weight
        and level in (kind.level, "everything")
    }
    found = {kind for seed in range(10) for kind in kinds(Generator(seed, level, rate=0.5), point)} - {None}
    assert found == allowed
    for kind in found:
        Fault(point, 1, kind)  # a plan may have it


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_no_more_faults_in_a_row_than_a_client_survives(rate):
    for seed in range(10):
        rows = [
            len(list(row))
            for hit, row in groupby(map(bool, kinds(Generator(seed, rate=rate), "commit g")))
            if hit
        ]
        assert max(rows, default=0) <= IN_A_ROW
        assert rate < 0.9 or IN_A_ROW in rows


def test_the_rate_is_the_part_of_calls_that_meet_one():
    hits = sum(bool(kind) for seed in range(30) for kind in kinds(Generator(seed, rate=0.1), "produce t-0"))
    assert 800 <= hits <= 1000  # of 9000, less those that would follow three others


def test_weights_choose():
    only = Generator(1, rate=0.5, weights=dict.fromkeys(set(KINDS) - {"evict"}, 0))
    assert set(kinds(only, "commit g")) == {None, "evict"} and set(kinds(only, "produce t-0")) == {None}
    often = Counter(kinds(Generator(1, rate=0.5, weights={"half_open": 100}), "commit g"))
    assert often["half_open"] > 100


def test_seeds_differ():
    assert len({tuple(kinds(Generator(seed), "produce t-0")) for seed in range(-20, 20)}) == 40


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((1.5,), {}, "a seed"),
        ((1, "some"), {}, "a level"),
        ((1,), {"rate": 2}, "a rate"),
        ((1,), {"rate": float("nan")}, "a rate"),
        ((1, "network"), {"weights": {"evict": 1}}, "not a fault of that level"),
        ((1,), {"weights": {"fire": 1}}, "not a fault"),
        ((1,), {"weights": {"evict": -1}}, "a weight"),
    ],
)
def test_bad_options_are_refused(arguments, options, words):
    with pytest.raises(ValueError, match=words):
        Generator(*arguments, **options)
