"""What the rows of a table look like: each check takes what is written, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from dafka.log import DamagedError, Log, shapes

ANYTHING = (
    *(None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**400, 0.5, 1e300),
    *(
        float("nan"),
        float("inf"),
        "",
        "text",
        b"",
        b"1234",
        [],
        [1],
        [1, "a"],
        [[1, 2]],
        {},
        {"a": 1},
        {"a": 1, "b": "x"},
    ),
)


@pytest.mark.parametrize(
    ("check", "taken"),
    [
        (shapes.number, [0, 1, -1, 2**63 - 1, -(2**63)]),
        (shapes.natural, [0, 1, 2**63 - 1]),
        (shapes.seconds, [0, 1, -1, 0.5, 2**63 - 1]),
        (shapes.text, ["", "text"]),
        (shapes.flag, [True, False]),
        (shapes.nothing, [None]),
        (shapes.octets(lambda size: size == 4), [b"1234"]),
        (shapes.row_of(shapes.number, shapes.text), [[1, "a"]]),
        (shapes.list_of(shapes.number), [[], [1]]),
        (shapes.list_of(shapes.list_of(shapes.number)), [[], [[1, 2]]]),
        (shapes.mapping_of(shapes.number), [{}, {"a": 1}]),
        (shapes.fields({"a": shapes.number}), [{"a": 1}]),
        (shapes.fields({"a": shapes.number}, {"b": shapes.text}), [{"a": 1}, {"a": 1, "b": "x"}]),
        (shapes.either(shapes.flag, shapes.text), [True, False, "", "text"]),
    ],
)
def test_a_check_takes_what_it_is_for(check: shapes.Check, taken: list[Any]) -> None:
    found = [repr(value) for value in ANYTHING if check(value)]
    assert found == [one for one in map(repr, ANYTHING) if one in map(repr, taken)]


def test_a_table_refuses_keys_and_values_that_its_owner_does_not_write(folder) -> None:
    with Log(folder) as log:
        log.write([], {("table", "good"): 1, ("table", "bad"): "text", ("other", "x"): 1})
    with Log(folder) as log:
        table = log.table("table", shapes.rows(shapes.any_key, shapes.number))
        assert table.get("good") == 1
        with pytest.raises(DamagedError, match="key 'bad' of table 'table'"):
            table.get("bad")
        with pytest.raises(DamagedError, match="key 'x' of table 'other'"):
            log.table("other", shapes.named_rows(y=shapes.number))
