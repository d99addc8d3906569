"""Some of Kafka's command-line tools; ``scripts/kafka_tools`` compares what all of them print."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients.adapters.java import Java
from clients.tools.kafka_tools import ELR, comparable, run


@pytest.fixture(autouse=True)
def _java() -> None:
    if (reason := Java().missing()) is not None:
        pytest.skip(reason)


def test_tools_change_levels_of_features_and_show_them(servers: str, tmp_path: Path) -> None:
    down = run(f"FeatureCommand downgrade --feature {ELR}=0", servers, tmp_path)
    assert f"{ELR} was downgraded to 0." in down
    up = run(f"FeatureCommand upgrade --feature {ELR}=1", servers, tmp_path)
    assert f"{ELR} was upgraded to 1." in up


def test_tools_are_told_that_there_are_no_tokens(servers: str, tmp_path: Path) -> None:
    told = run("DelegationTokenCommand --describe --command-config {empty}", servers, tmp_path)
    assert "Delegation Token requests are not allowed on PLAINTEXT" in told


def test_outputs_are_compared_without_what_differs_from_run_to_run() -> None:
    one = "Topic: a TopicId: S9FRcTE8S8-I8P9ZF6aGlg at 127.0.0.1:9092 2026-11-23 07:30:55,353 12.5 ms"
    other = "Topic: a TopicId: SSIVwoevT4e0c8zQ1guuhw at 127.0.0.1:1234 2026-11-23 07:31:25,344 7 ms"
    assert comparable(one) == comparable(other)
    assert comparable("exit 0") == ["exit N"]
    assert comparable("UNSUPPORTED") != comparable("N")
