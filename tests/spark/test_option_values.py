"""The text of options: accepted forms, and errors that name the expected one."""

from __future__ import annotations

import pytest

from dafka.spark import option_values as values


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (values.by_partition, '{"t": {"0": 23, "1": -2}}', {("t", 0): 23, ("t", 1): -2}),
        (values.by_partition, "{}", {}),
        (values.assignment, '{"t": [0, 1, 0], "u": [2]}', (("t", 0), ("t", 1), ("u", 2))),
        (values.servers, " a:1 ,b:2,", "a:1,b:2"),
        (values.servers, "[::1]:9092", "[::1]:9092"),
        (values.servers, "SSL://a:1", "SSL://a:1"),
        (values.names, "t, u,t", ("t", "u")),
        (values.name, " t ", "t"),
        (values.pattern, " orders-.* ", "orders-.*"),
        (values.boolean, " True ", True),
        (values.boolean, "false", False),
        (values.not_negative, "0", 0),
        (values.positive, " 15 ", 15),
        (values.duration, "15m", 900.0),
        (values.duration, "1.5 Hours", 5400.0),
        (values.duration, "250ms", 0.25),
        (values.duration, "2 days", 172_800.0),
        (values.one_of("earliest", "latest"), " LATEST", "latest"),
    ],
)
def test_values_are_read(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (values.by_partition, "23", 'expected {"topic": {"0": 23, "1": -2}}, not '),
        (values.by_partition, '{"t": 23}', "expected"),
        (values.by_partition, '{"t": {"zero": 23}}', "expected"),
        (values.by_partition, '{"t": {"0": "23"}}', "expected"),
        (values.by_partition, '{"t": {"0": true}}', "expected"),
        (values.by_partition, "{", "expected"),
        (values.by_partition, "[" * 100_000, "expected"),
        (values.assignment, '{"t": 0}', 'expected {"topic": [0, 1]}, not '),
        (values.assignment, '{"t": [-1]}', "expected"),
        (values.assignment, '{"t": []}', "no partition is named"),
        (values.servers, "", "expected HOST:PORT"),
        (values.servers, "a:70000", "expected HOST:PORT"),
        (values.servers, "a:b", "expected HOST:PORT"),
        (values.names, "t,,u", "expected topics with commas between them"),
        (values.name, " ", "the name of a topic is not empty"),
        (values.pattern, "(", "'(' is not a valid regular expression"),
        (values.pattern, "(" * 5000, "'((("),
        (values.pattern, " ", "the pattern is empty"),
        (values.boolean, "yes", "expected true or false, not 'yes'"),
        (values.not_negative, "-1", "expected a number, not '-1'"),
        (values.not_negative, "1" * 19, "expected a number"),
        (values.positive, "0", "expected a number above 0"),
        (values.duration, "15", "expected a time such as 15m or 30s, not '15'"),
        (values.duration, "-1s", "expected a time"),
        (values.one_of("none", "gzip", "zstd"), "rar", "expected none, gzip or zstd, not 'rar'"),
    ],
    ids=lambda one: one[:30] if isinstance(one, str) else None,
)
def test_a_value_that_cannot_be_read_is_an_error_that_says_what_was_expected(parse, text, says):
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert str(caught.value).startswith(says)
