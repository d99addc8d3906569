"""``dafka kafka configs``."""

from __future__ import annotations


def test_settings_of_a_topic_are_changed_and_shown_with_their_source(terminal, topic):
    terminal.run("topics", "create", topic)
    whose = ["--topic", topic]
    assert [row for row in terminal.rows("configs", "describe", *whose) if row["source"] == "TOPIC"] == []
    terminal.run("configs", "alter", *whose, "--set", "retention.ms=5000", "--set", "cleanup.policy=compact")
    terminal.run("configs", "alter", *whose, "--set", "retention.ms=9", "--check")  # changes nothing
    own = [row for row in terminal.rows("configs", "describe", *whose) if row["source"] == "TOPIC"]
    assert [(row["name"], row["value"]) for row in own] == [
        ("cleanup.policy", "compact"),
        ("retention.ms", "5000"),
    ]
    everything = {row["name"]: row for row in terminal.rows("configs", "describe", *whose, "--all")}
    assert everything["max.message.bytes"]["source"] == "DEFAULT"
    terminal.run("configs", "alter", *whose, "--unset", "retention.ms")
    shown = [line.split() for line in terminal.run("configs", "describe", *whose).splitlines()]
    assert ["cleanup.policy", "compact", "TOPIC"] in shown


def test_invalid_settings_are_refused(terminal, topic):
    terminal.run("topics", "create", topic)
    said = terminal.refused("configs", "alter", "--topic", topic, "--set", "retention.ms=soon")
    assert "InvalidConfigurationError" in said
    assert "name what it belongs to" in terminal.misused("configs", "describe")
    assert "say what" in terminal.misused("configs", "alter", "--topic", topic)
    assert "is not NAME=VALUE" in terminal.misused("configs", "alter", "--topic", topic, "--set", "a")
    assert "UnknownTopicOrPartitionError" in terminal.refused(
        "configs", "describe", "--topic", f"{topic}-none"
    )


def test_groups_and_brokers_have_settings_too(terminal, topic):
    terminal.run("configs", "alter", "--group", topic, "--set", "consumer.session.timeout.ms=50000")
    (row,) = terminal.rows("configs", "describe", "--group", topic)
    assert (row["name"], row["value"], row["source"]) == ("consumer.session.timeout.ms", "50000", "GROUP")
    (node,) = [one["broker"] for one in terminal.rows("cluster", "describe")[0]["brokers"]]
    assert terminal.rows("configs", "describe", "--broker", str(node), "--all")
