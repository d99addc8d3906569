"""Tests with ``dafka_chaos``: each runs with many seeds, and a failing seed is shrunk and told.

The plugin calls this for tests that have the fixture, and imports it for no others.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ExceptionRepr
from _pytest.runner import runtestprotocol

from dafka.testing.torture.broker import chaos
from dafka.testing.torture.history import around, table
from dafka.testing.torture.plan import Fault, written
from dafka.testing.torture.shrinking import shrink

MARKER = "dafka_chaos"
FIRST_SEEDS = 10  # without an option

_broker = pytest.StashKey[chaos]()
_plan = pytest.StashKey["list[Fault]"]()
_raised = pytest.StashKey[str]()

_failed = pytest.StashKey["dict[str, str]"]()  # of the run: failures by test


# -- which seeds ------------------------------------------------------------------------------------


def seeds_of(config: pytest.Config) -> Sequence[int]:
    """The seeds that the options ask for. Raises pytest.UsageError."""
    one, many = config.getoption("dafka_chaos_seed"), config.getoption("dafka_chaos_seeds")
    if one is not None:
        return [one]
    if many is None:
        return range(FIRST_SEEDS)
    if many < 1:
        raise pytest.UsageError(f"--dafka-chaos-seeds is how many seeds, 1 or more, not {many}")
    return range(many)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """A test for each seed; only one for a test with a plan."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None or "plan" not in marker.kwargs:
        seeds = seeds_of(metafunc.config)
        metafunc.parametrize(MARKER, seeds, indirect=True, ids=[f"seed{seed}" for seed in seeds])


@contextmanager
def broker_of(item: pytest.Item, seed: int | None) -> Iterator[chaos]:
    """The broker of a test: with the faults of its seed, of its marker's plan, or of a shorter plan."""
    marker = item.get_closest_marker(MARKER)
    options = {} if marker is None else dict(marker.kwargs)
    if marker is not None and marker.args:
        raise TypeError(f"@pytest.mark.{MARKER} takes level=, rate=, weights= or plan=, not {marker.args!r}")
    shorter = item.stash.get(_plan, None)
    if seed is None and (options.keys() - {"plan"}):
        raise TypeError(f"a plan has no {', '.join(sorted(options.keys() - {'plan'}))}")
    if shorter is not None:
        broker = chaos.plan(shorter)
    elif seed is None:
        broker = chaos.plan(options["plan"])
    else:
        broker = chaos(seed, **options)
    item.stash[_broker] = broker
    with broker:
        yield broker


# -- running ----------------------------------------------------------------------------------------


def run(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run a test, as pytest does; if it fails, tell the seed, and shrink its faults if that is wanted."""
    hooks = item.ihook
    hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        if report.when == "call" and report.failed and _broker in item.stash:
            _remember(item)
            _add(report, _told(item, nextitem))
    for report in reports:
        hooks.pytest_runtest_logreport(report=report)
    hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if _broker in item.stash:
        del item.stash[_broker]


def note_error(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Keep what a test raised: another error is another failure."""
    if call.when == "call":
        item.stash[_raised] = "" if call.excinfo is None else call.excinfo.typename


def _told(item: pytest.Item, nextitem: pytest.Item | None) -> str:
    """A note on a failure: how to repeat it, and with what."""
    broker, error = item.stash[_broker], item.stash[_raised]
    faults = broker.faults
    seed = _seed(item)
    lines = []
    if seed is not None:
        command = f"pytest {shlex.quote(item.nodeid)} --dafka-chaos-seed {seed}"
        lines += [f"seed {seed} fails, with {_count(faults)}; again:", "", f"    {command}", ""]
    calls = around(broker.history, None)
    if item.config.getoption("dafka_chaos_shrink") and not item.config.getoption("usepdb"):
        faults, words, calls = _shrunk(item, nextitem, faults, error, calls)
        lines += [words]
    elif faults:
        lines += ["These faults have happened (--dafka-chaos-shrink finds those that are enough):"]
    if faults:
        plan = "\n".join("    " + line for line in written(faults).splitlines()).strip()
        lines += ["", "    from dafka.testing import Fault, chaos", "", f"    chaos.plan({plan})", ""]
    return "\n".join([*lines, "The last calls:", table(calls)])


def _shrunk(
    item: pytest.Item, nextitem: pytest.Item | None, faults: list[Fault], error: str, calls: list[Any]
) -> tuple[list[Fault], str, list[Any]]:
    """The faults that are enough, in words, and the last calls of a run with them."""
    if hasattr(item.ihook, "pytest_timeout_cancel_timer"):  # it is for one run, and has bounds of its own
        item.ihook.pytest_timeout_cancel_timer(item=item)

    def fails(some: list[Fault], following: object = None) -> bool:
        item.stash[_plan] = some
        try:
            # The parent as the next one: fixtures of a wider scope stay.
            reports = runtestprotocol(item, nextitem=following or item.parent, log=False)  # type: ignore[arg-type]
        finally:
            del item.stash[_plan]
        failed = any(one.when == "call" and one.failed for one in reports)
        return failed and item.stash[_raised] == error

    def again(some: list[Fault]) -> bool:
        nonlocal calls
        failed = fails(some)
        if failed:
            calls = around(item.stash[_broker].history, None)
        return failed

    try:
        found = shrink(faults, again)
    finally:
        item.session._setupstate.teardown_exact(nextitem)
    if found is None:
        words = "Run again with the same faults it passes: the failure depends on threads or on time, too."
        return faults, f"{words} These have happened:", calls
    runs = f"found in {found.runs} runs of the test"
    if not found.faults:
        return [], f"It fails without any fault as well ({runs}).\n", calls
    if not found.minimal:
        return (
            found.faults,
            f"{_count(found.faults)} are enough, perhaps fewer ({runs}, then time was up):",
            calls,
        )
    enough = "is" if len(found.faults) == 1 else "are"
    return found.faults, f"{_count(found.faults)} {enough} enough, and none can be left out ({runs}):", calls


def _count(faults: list[Fault]) -> str:
    return f"{len(faults)} fault{'' if len(faults) == 1 else 's'}"


def _add(report: pytest.TestReport, words: str) -> None:
    if isinstance(report.longrepr, ExceptionRepr):
        report.longrepr.addsection("chaos", words, "-")
    else:
        report.sections.append(("chaos", words))


# -- the first failure ends the other seeds of a test -------------------------------------------------


def skip_after_failure(item: pytest.Item) -> None:
    """Skip a test of which another seed has failed."""
    if _seed(item) is None or _plan in item.stash:
        return
    key = _key(item)
    failed = item.config.stash.setdefault(_failed, {}).get(key)
    path = _shared(item.config, key)
    if failed is None and path is not None and path.exists():
        failed = path.read_text()
    if failed not in (None, "", item.nodeid):
        pytest.skip(f"{failed} has failed")


def _remember(item: pytest.Item) -> None:
    key = _key(item)
    item.config.stash.setdefault(_failed, {})[key] = item.nodeid
    path = _shared(item.config, key)
    if path is not None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(item.nodeid)


def _seed(item: pytest.Item) -> int | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get(MARKER)


def _key(item: pytest.Item) -> str:
    """The test without its seed: with its other parameters."""
    return item.nodeid.replace(f"seed{_seed(item)}", "seed")


def _shared(config: pytest.Config, key: str) -> Path | None:
    """The file in which the workers of pytest-xdist say which seed of a test has failed."""
    folder = getattr(config, "workerinput", {}).get(MARKER)
    return None if folder is None else Path(folder, blake2b(key.encode(), digest_size=8).hexdigest())
