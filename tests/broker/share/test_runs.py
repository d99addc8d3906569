"""Runs of offsets are split where they change and joined where they are alike."""

from __future__ import annotations

import random
from itertools import pairwise

from dafka.broker.share.runs import RecordState, Run, Runs

AVAILABLE, ARCHIVED = RecordState.AVAILABLE, RecordState.ARCHIVED


def made() -> Runs:
    runs = Runs(10)
    runs.append(Run(10, 19, AVAILABLE, 1))
    runs.append(Run(20, 29, AVAILABLE, 1))  # joined at once
    return runs


def seen(runs: Runs) -> list[tuple[int, int, str]]:
    return [(run.first, run.last, run.state.name) for run in runs]


def test_changed_offsets_are_split_off_and_joined_again() -> None:
    runs = made()
    assert len(runs) == 1
    for run in runs.cut(12, 14):
        run.change(ARCHIVED, 1)
    assert seen(runs) == [(10, 11, "AVAILABLE"), (12, 14, "ARCHIVED"), (15, 29, "AVAILABLE")]
    for run in runs.cut(0, 100):
        run.change(AVAILABLE, 1)
    runs.join(10, 29)
    assert seen(runs) == [(10, 29, "AVAILABLE")]


def test_runs_within_a_range() -> None:
    runs = made()
    runs.cut(15, 19)
    assert [run.first for run in runs.within(14, 15)] == [10, 15]
    assert [run.first for run in runs.within(20, 99)] == [20]
    assert list(runs.within(30, 99)) == []
    assert runs.cut(30, 40) == []


def test_start_and_end_move() -> None:
    runs = made()
    runs.move_start(15)
    runs.move_end(25)
    assert (runs.start, runs.end, seen(runs)) == (15, 25, [(15, 24, "AVAILABLE")])
    runs.move_start(40)
    assert (runs.start, runs.end, seen(runs)) == (40, 40, [])
    runs.move_start(30)
    assert runs.start == 40


def test_many_changes_are_carried_out_in_one_go() -> None:
    runs = Runs(0)
    for first, state in ((0, AVAILABLE), (10, ARCHIVED), (20, AVAILABLE)):
        runs.append(Run(first, first + 9, state, 1))
    runs.change([(2, 3, ARCHIVED), (5, 14, AVAILABLE), (18, 29, ARCHIVED)], lambda run, to: run.change(to, 1))
    assert seen(runs) == [
        (0, 1, "AVAILABLE"),
        (2, 3, "ARCHIVED"),
        (4, 14, "AVAILABLE"),  # joined with what was behind it
        (15, 29, "ARCHIVED"),
    ]
    runs.change([], lambda run, to: run.change(to, 1))
    runs.change([(0, 29, AVAILABLE)], lambda run, to: run.change(to, 1))
    assert seen(runs) == [(0, 29, "AVAILABLE")]


def test_changes_are_as_if_each_offset_was_changed_by_itself() -> None:
    chance = random.Random(5)
    for _ in range(300):
        runs, model = Runs(0), [AVAILABLE] * 40
        runs.append(Run(0, 39, AVAILABLE, 1))
        for _ in range(4):
            borders = sorted(chance.sample(range(41), 2 * chance.randint(1, 6)))
            changes = [
                (first, end - 1, chance.choice((AVAILABLE, ARCHIVED)))
                for first, end in zip(borders[::2], borders[1::2], strict=True)
            ]
            parts: list[tuple[int, int]] = []

            def change(run: Run, to: RecordState, parts: list[tuple[int, int]] = parts) -> None:
                parts.append((run.first, run.last))
                run.change(to, 1)

            runs.change(changes, change)
            for first, last, to in changes:
                model[first : last + 1] = [to] * (last - first + 1)
                assert sum(b - a + 1 for a, b in parts if first <= a and b <= last) == last - first + 1
            assert [one for run in runs for one in [run.state] * len(run)] == model
            assert all(a.last + 1 == b.first and a.state != b.state for a, b in pairwise(runs))
