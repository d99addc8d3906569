"""``dafka kafka produce``."""

from __future__ import annotations


def values(terminal, topic, *fields):
    return [tuple(row[one] for one in fields) for row in terminal.rows("consume", topic, "--exit")]


def test_lines_with_keys_headers_and_nulls(terminal, topic):
    terminal.run("topics", "create", topic, "--partitions", "2")
    terminal.run(
        "produce",
        topic,
        "-K",
        ":",
        "--null",
        "NULL",
        "--header",
        "a=b=c",
        "--partition",
        "1",
        stdin="k:v:w\r\nk:NULL\n",
    )
    header = [{"name": "a", "value": "b=c"}]
    assert values(terminal, topic, "partition", "key", "value", "headers") == [
        (1, "k", "v:w", header),
        (1, "k", None, header),
    ]


def test_files_are_read_as_lines_or_whole(terminal, topic, tmp_path):
    terminal.run("topics", "create", topic, "--config", "retention.ms=-1")
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1\n2")
    two.write_bytes(b"3\n")
    terminal.run("produce", topic, str(one), str(two), "--key", "k", "--timestamp", str(10**12))
    assert values(terminal, topic, "key", "value", "timestamp") == [("k", n, 10**12) for n in "123"]
    terminal.run("produce", topic, "--whole", str(one), "--compression", "gzip")
    assert values(terminal, topic, "value")[-1] == ("1\n2",)


def test_a_line_that_is_not_a_record_is_named_and_those_before_it_are_sent(terminal, topic):
    terminal.run("topics", "create", topic)
    said = terminal.refused("produce", topic, "--json", stdin='{"value": 1}\n{"valu": 2}\n')
    assert "standard input, line 2: 'valu' is not a field" in said
    assert values(terminal, topic, "value") == [("1",)]
    assert "there is no ':' in it" in terminal.refused("produce", topic, "-K", ":", stdin="k:v\nv\n")


def test_records_the_broker_refuses_are_named(terminal, topic):
    terminal.run("topics", "create", topic, "--config", "max.message.bytes=1000")
    said = terminal.refused("produce", topic, stdin="a\n" + "b" * 5000 + "\n")
    assert "line 2: MessageSizeTooLargeError" in said
    assert values(terminal, topic, "value") == [("a",)]
    terminal.run("topics", "alter", topic, "--set", "cleanup.policy=compact")
    assert "InvalidRecordError" in terminal.refused("produce", topic, stdin="without key\n")


def test_options_that_do_not_go_together_are_refused(terminal, topic):
    for options in (["--json", "--key", "k"], ["--whole"], ["--key", "k", "-K", ":"], ["-K", ""]):
        terminal.misused("produce", topic, *options)


def test_a_header_whose_name_is_not_text_is_refused_before_anything_is_sent(terminal, topic):
    said = terminal.misused("produce", topic, "--header", "na\udcffme=value")
    assert "the name of a header is UTF-8, not b'na\\xffme'" in said
