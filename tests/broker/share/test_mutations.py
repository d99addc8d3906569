"""The histories find what is wrong with a share partition: each of these mutations breaks some of them."""

from __future__ import annotations

import inspect

import pytest
from broker.share import share_histories

from dafka.broker.share import acknowledgements, acquisition, partition

SEEDS = 150

MUTATIONS = {
    "whoever asks may acknowledge": (" or run.member != member or", " or"),
    "any record may be acknowledged": (
        "run.state is not RecordState.ACQUIRED or run.member != member or run.until <= now",
        "False",
    ),
    "a lock is valid after its time": (" or run.until <= now:", ":"),
    "a lock ends before its time": (
        "if run.state is ACQUIRED and run.until <= now\n",
        "if run.state is ACQUIRED\n",
    ),
    "a renewed lock is forgotten": ("            self._locked(run.until, run.first, run.last)\n", ""),
    "renewing changes nothing": ("run.until = now + terms.lock\n", "pass\n"),
    "one delivery too many": ("run.count < terms.deliveries", "run.count <= terms.deliveries"),
    "a delivery is not counted": (
        "run_first + size - 1, count + 1, taking",
        "run_first + size - 1, count, taking",
    ),
    "aborted records are delivered": ("if batch.deliver:", "if True:"),
    "the gap that a read begins with is delivered": ("if batch.first > at and is_first:", "if False:"),
    "an acknowledgement is not stored": (
        "if type_ == _ACCEPT else ARCHIVED, run.count)\n            self._note(run.first, run.last)",
        "if type_ == _ACCEPT else ARCHIVED, run.count)",
    ),
    "what is given back is not found": (
        "self._seek = min(self._seek, run.first)\n        else:\n            run.change(ARCHIVED",
        "pass\n        else:\n            run.change(ARCHIVED",
    ),
    "the start moves too far": (
        "if not run.state.is_final:\n                break",
        "if False:\n                break",
    ),
    "the start does not move": ("if done > self.start:", "if False:"),
    "there is no limit of records in flight": ("if known_only else room)", "if known_only else records)"),
    "there is always room": ("taking.known_only = known_only", "pass"),
    "a part of a batch comes into flight": (
        "if taking.strict and not taking.exact else 0",
        "if False else 0",
    ),
    "a part of a gap comes into flight": ("if taking.strict and not taking.exact", "if taking.strict"),
    "a record is not alone on its last delivery": ("return 0 if had else 1", "pass"),
    "what retention removes stays in flight": ("if not run.state.is_final\n        )", "if False\n        )"),
    "a member that leaves keeps its records": (
        "self._take_back(held, terms)",
        "pass",
    ),
    "what is refused was carried out in part": (
        "check_acquired(self._runs, now, member, parts)",
        "self._settle(now, terms, next(self._runs.within(*parts[0][:2])), 1)\n"
        "        check_acquired(self._runs, now, member, parts)",
    ),
}


def mutant(old: str, new: str) -> type[partition.SharePartition]:
    sources = [
        inspect.getsource(module) for module in (partition, acquisition, acknowledgements)
    ]  # the first one has the others
    assert sum(source.count(old) for source in sources) == 1, old
    names: dict[str, object] = {"__name__": "mutant"}
    for source in sources:
        exec(compile(source.replace(old, new), "mutant", "exec"), names)
    names["InvalidRecordStateError"] = acknowledgements.InvalidRecordStateError
    found = names["SharePartition"]
    assert isinstance(found, type)
    return found


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_histories_find(name: str) -> None:
    machine = mutant(*MUTATIONS[name])
    for seed in range(SEEDS):
        try:
            share_histories.World(seed, machine).run()
        except Exception:
            return
    pytest.fail(f"{SEEDS} histories did not notice it")
