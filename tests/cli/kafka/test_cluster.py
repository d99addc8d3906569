"""``dafka kafka cluster``."""

from __future__ import annotations

from timing import until


def test_it_shows_brokers_features_and_folders(terminal, topic):
    terminal.run("topics", "create", topic)
    (row,) = terminal.rows("cluster", "describe")
    (broker,) = row["brokers"]
    assert f"{broker['host']}:{broker['port']}" == terminal.servers.replace("localhost", broker["host"])
    assert "transaction.version" in [one["feature"] for one in row["features"]]
    assert row["topics"] >= 1
    # Not at once, in Kafka.
    until(lambda: terminal.rows("cluster", "describe")[0]["folders"][0]["partitions"] >= 1)
    shown = terminal.run("cluster", "describe")
    assert shown.startswith(f"cluster {row['cluster']}: ") and "transaction.version" in shown
