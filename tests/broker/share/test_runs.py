"""Runs of offsets are split where they change and joined where they are alike."""

from __future__ import annotations

from dafka.broker.share.runs import RecordState, Run, Runs

AVAILABLE, ARCHIVED = RecordState.AVAILABLE, RecordState.ARCHIVED


def made() -> Runs:
    runs = Runs(10)
    runs.append(Run(10, 19, AVAILABLE, 1))
    runs.append(Run(20, 29, AVAILABLE, 1))  # joined at once
    return runs


def seen(runs: Runs) -> list[tuple[int, int, str]]:
    return [(run.first, run.last, run.state.name) for run in runs]


def test_what_changes_is_split_off_and_joined_again() -> None:
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
