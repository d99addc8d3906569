"""A daemon has as many descriptors as it is allowed to have, and not the thousand that a shell gives it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.tools import LOOPBACK, address_of, running
from descriptors import descriptors

from dafka.cli import descriptors as module
from dafka.cli.descriptors import take_descriptors


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_descriptors_are_as_many_as_allowed_up_to_a_bound(limits, monkeypatch):
    _, hard = limits
    for most in (600, 800, 700):
        monkeypatch.setattr(module, "MOST", most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        take_descriptors()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, hard)
    monkeypatch.setattr(module, "MOST", 600)
    take_descriptors()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (700, hard)


@pytest.mark.skipif(
    not Path("/proc/self/limits").exists(), reason="this system does not show limits of others"
)
def test_a_broker_has_more_descriptors_than_its_shell(limits, tmp_path):
    _, hard = limits
    with descriptors(2000):
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        with running("broker", *LOOPBACK, "--data", str(tmp_path / "db")) as broker:
            assert address_of(broker)
            line = next(
                line
                for line in Path(f"/proc/{broker.pid}/limits").read_text().splitlines()
                if line.startswith("Max open files")
            )
            assert int(line.split()[3]) == min(int(line.split()[4]), module.MOST) > 1024
