"""The live screen."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable, Footer, Static

from dafka.broker.looking.outcomes import printable
from dafka.broker.looking.watching import Look
from dafka.cli.kafka.top.looker import Looker
from dafka.cli.kafka.top.rows import (
    GROUPS,
    TOPICS,
    answered,
    group_cells,
    headline,
    left_out,
    seconds,
    topic_cells,
)

ROWS = 200
"""Rows of a table; those with the largest numbers, or the first ones by name."""

_NUMBERS = {"PARTITIONS", "RECORDS", "WRITTEN/S", "BYTES/S", "LAG", "READ/S", "DELAY"}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Found(Message):
    """The result of a look, or the error that came in its place."""

    def __init__(self, found: Look | Exception) -> None:
        super().__init__()
        self.found = found

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, _Found)  # a screen that is behind shows the newest


class TopScreen(App[None]):
    """Two tables that ``look()`` fills every ``interval`` seconds."""

    CSS = """
    #head { height: auto; padding: 0 1; }
    DataTable { height: 1fr; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("s", "sort", "Sort"),
        Binding("p", "pause", "Pause"),
        Binding("tab", "app.focus_next", "Other table"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    ]

    def __init__(self, look: Callable[[], Look], interval: float, servers: str) -> None:
        super().__init__()
        self._servers = servers
        self._looker = Looker(look, interval, lambda found: self.post_message(_Found(found)))
        self._last: Look | None = None
        self._answered = time.monotonic()
        self._error = ""
        self._by_name = False

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        for name, columns in (("topics", TOPICS), ("groups", GROUPS)):
            table: DataTable[Text] = DataTable(id=name, cursor_type="none", zebra_stripes=True)
            for column in columns:
                table.add_column(_cell(column, column), key=column)
            yield table
        yield Footer()

    def on_mount(self) -> None:
        for one in _SIGNALS:  # of a supervisor, or of a terminal that was closed: the screen is given back
            with suppress(NotImplementedError, RuntimeError, ValueError):  # not in a thread
                asyncio.get_running_loop().add_signal_handler(one, self.exit)
        self.set_interval(1.0, self._show_head)
        self._show_head()
        self._looker.start()

    def on_unmount(self) -> None:
        self._looker.end()

    def on__found(self, message: _Found) -> None:
        if isinstance(message.found, Exception):
            self._error = printable(str(message.found) or type(message.found).__name__)
        else:
            self._last, self._error = message.found, ""
            self._answered = time.monotonic()
            self._show_tables()
        self._show_head()

    def action_sort(self) -> None:
        """Sort by name, or by numbers again."""
        self._by_name = not self._by_name
        self._show_tables()
        self._show_head()

    def action_pause(self) -> None:
        """Look no more, or again."""
        self._looker.pause(not self._looker.paused)
        self._show_head()

    def _show_head(self) -> None:
        look = self._last
        lines = [f"{printable(self._servers)}: waiting for an answer"]
        if look is not None:
            lines = [headline(look), answered(look), left_out(look)]
        silent = time.monotonic() - self._answered
        if self._looker.paused:
            lines.append("paused: p goes on")
        elif self._error:
            lines.append(f"no answer for {seconds(silent)}: {self._error}")
        elif silent > 10 and look is not None:
            lines.append(f"no answer for {seconds(silent)}")
        for head in self.query("#head").results(Static):  # there is none any more while it is ending
            head.update(Text("\n".join(line for line in lines if line)))

    def _show_tables(self) -> None:
        if self._last is None:
            return
        topics, groups = self._last.topics, self._last.groups
        if not self._by_name:
            topics = sorted(topics, key=lambda row: (-(row.written or 0), -row.records, row.topic))
            groups = sorted(groups, key=lambda row: (-(row.lag or 0), -(row.delay or 0), row.group))
        self._fill("#topics", TOPICS, map(topic_cells, topics[:ROWS]))
        self._fill("#groups", GROUPS, map(group_cells, groups[:ROWS]))

    def _fill(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Show these rows: equal rows stay as they are, and so does the place to which the table is
        scrolled."""
        table = next(iter(self.query(name).results(DataTable)), None)
        if table is None:
            return  # it is ending
        new = [[_cell(column, text) for column, text in zip(columns, row, strict=True)] for row in rows]
        for row in [one.key for one in table.ordered_rows[len(new) :]]:
            table.remove_row(row)
        for number, cells in enumerate(new):
            if number >= table.row_count:
                table.add_row(*cells)
                continue
            for at, (old, cell) in enumerate(zip(table.get_row_at(number), cells, strict=True)):
                if old != cell:
                    table.update_cell_at(Coordinate(number, at), cell, update_width=True)


def _cell(column: str, text: str) -> Text:
    return Text(text, justify="right" if column in _NUMBERS else "left")
