"""Numbers as options of commands take them, from the command line and from configuration files."""

from __future__ import annotations

import math
from typing import Any

import click


class Number(click.FloatRange):
    """A number within bounds, and not NaN, which click lets through all bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number", param, ctx)
        return number


class Seconds(Number):
    """A length of time that may be waited for: 0 or more, and ``inf``."""

    def __init__(self) -> None:
        super().__init__(0)
