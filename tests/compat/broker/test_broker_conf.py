"""CAF's syntax of configuration files."""

from __future__ import annotations

import pytest

from compat.broker._broker_conf import MOST_NESTED, MOST_OCTETS, ConfigurationError, read


@pytest.fixture
def parsed(tmp_path):
    """What a file of these octets says."""

    def parse(content):
        path = tmp_path / "file"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read(str(path))

    return parse


def test_a_file_that_is_not_there_is_none(tmp_path):
    assert read(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("# only words\n\n", {}),
        ("a = true", {"a": True}),
        ("a=false,b=-3", {"a": False, "b": -3}),
        ("a { b = 1 c { d = 0x10 } } # end", {"a.b": 1, "a.c.d": 16}),
        ("a = { b = 1 }", {"a.b": 1}),
        ("a { b = 1 } a { c = 2 }", {"a.b": 1, "a.c": 2}),
        ("a.b-c = 'atom'", {"a.b-c": "atom"}),
        ('a = "say \\"so\\"\\n # no comment"', {"a": 'say "so"\n # no comment'}),
        ("a = [1, 2.5, [true], 'x']", {"a": [1, 2.5, [True], "x"]}),
        ("a = 500ms", {"a": "500ms"}),
    ],
)
def test_groups_lists_and_values(parsed, text, settings):
    assert parsed(text) == settings


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("a", "ends within"),
        ("a = ", "ends within"),
        ("a = [1", "ends within"),
        ("a 1", "line 1: '1' where = or { has to stand"),
        ("\n}", "line 2: '}' is not the name"),
        ("a = yes", "'yes' is not a value"),
        ('a = "x', "text without an end"),
        ("a = }", "'}' is not a value"),
        (b"a = \xff", "utf-8"),
        ("a=" + "[" * (MOST_NESTED + 1), "within each other"),
        ("#" * (MOST_OCTETS + 1), "octets"),
    ],
)
def test_a_malformed_file_is_an_error_with_its_line(parsed, content, what):
    with pytest.raises(ConfigurationError, match=what) as caught:
        parsed(content)
    assert str(caught.value).startswith("Error while reading ")
