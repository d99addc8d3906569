"""Numbers of options: NaN is none, whichever option it is given for."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.types import FloatParamType

from dafka.cli import main
from dafka.cli.numbers import Number, Seconds


def options_with_fractions(command: click.Command, path: str) -> Iterator[tuple[str, click.Parameter]]:
    """All options of a command and of those below it that take a number with a fraction.

    Those of Spark's pipelines are checked in :mod:`dafka.spark`.
    """
    context = click.Context(command)
    for one in command.params:
        if isinstance(one.type, FloatParamType):
            yield f"{path} {one.opts[-1]}", one
    if isinstance(command, click.Group):
        for name in sorted({*command.list_commands(context)} - {"pipeline"}):
            below = command.get_command(context, name)
            assert below is not None
            yield from options_with_fractions(below, f"{path} {name}")


def test_no_option_takes_nan():
    found = dict(options_with_fractions(main, "dafka"))
    assert len(found) >= 20
    for name, option in found.items():
        for nan in ("nan", "-NaN", float("nan")):  # the last one is a configuration file's
            with pytest.raises(click.BadParameter, match="is not a number"):
                option.type.convert(nan, option, None)
                pytest.fail(f"{name} takes {nan}")


def test_bounds_are_clicks_and_infinity_may_be_waited_for():
    assert Seconds().convert("inf", None, None) == float("inf")
    assert Number(0, 1).convert("0.5", None, None) == 0.5
    with pytest.raises(click.BadParameter):
        Seconds().convert("-1", None, None)
