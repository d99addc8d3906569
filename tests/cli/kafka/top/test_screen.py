"""The screen, with Textual's pilot in the place of a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from textual.pilot import Pilot
from textual.widgets import DataTable, Static
from timing import SECONDS

from dafka.broker.looking.watching import GroupRow, Look, TopicRow
from dafka.cli.kafka.top.screen import ROWS, TopScreen


def look_at(topics: int = 2) -> Look:
    return Look(
        "it",
        1,
        [TopicRow(f"t{number:04}", 1, 10, float(number)) for number in range(topics)],
        [GroupRow("[bold]a", "classic", "Stable", 1, 0.0, 0.0), GroupRow("b", "share", "Empty", 5, 0.0, 9.0)],
        [],
        {"partitions": 0, "groups": 0},
    )


class Broker:
    def __init__(self) -> None:
        self.answer: Look | Exception = look_at()

    def look(self) -> Look:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def on_screen(test: Callable[[Pilot[None], Broker], Coroutine[Any, Any, None]], lines: int = 24) -> TopScreen:
    """Run a test on the screen of a broker; the screen, which has ended."""
    broker = Broker()
    screen = TopScreen(broker.look, 0.1, "here:9092")

    async def run() -> None:
        async with screen.run_test(size=(80, lines)) as pilot:
            await test(pilot, broker)

    asyncio.run(run())
    return screen


async def until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not true():
        assert asyncio.get_running_loop().time() < deadline, head(pilot)
        await pilot.pause(0.01)


def head(pilot: Pilot[None]) -> str:
    return str(pilot.app.query_one("#head", Static).render())


def screen_of(pilot: Pilot[None]) -> TopScreen:
    assert isinstance(pilot.app, TopScreen)
    return pilot.app


def rows(pilot: Pilot[None], name: str) -> list[list[str]]:
    table = pilot.app.query_one(name, DataTable)
    return [[str(cell) for cell in table.get_row_at(number)] for number in range(table.row_count)]


def test_tables_have_the_largest_numbers_first_and_names_on_demand() -> None:
    async def test(pilot: Pilot[None], broker: Broker) -> None:
        await until(pilot, lambda: len(rows(pilot, "#groups")) == 2)
        assert [row[0] for row in rows(pilot, "#topics")] == ["t0001", "t0000"]
        assert rows(pilot, "#groups")[0] == ["b", "share", "Empty", "5", "0", "9.0 s"]
        await pilot.press("s")
        await until(pilot, lambda: rows(pilot, "#topics")[0][0] == "t0000")
        assert rows(pilot, "#groups")[0][0] == "[bold]a", "a name is no markup"
        await pilot.press("s")
        await until(pilot, lambda: rows(pilot, "#topics")[0][0] == "t0001")

    on_screen(test)


def test_a_broker_that_goes_away_is_told_and_what_was_seen_stays() -> None:
    async def test(pilot: Pilot[None], broker: Broker) -> None:
        await until(pilot, lambda: "cluster it" in head(pilot))
        broker.answer = KafkaConnectionError("it is\x1b away")
        await until(pilot, lambda: "no answer for" in head(pilot))
        assert "it is\\x1b away" in head(pilot) and len(rows(pilot, "#topics")) == 2
        broker.answer = look_at(3)
        await until(pilot, lambda: "no answer" not in head(pilot))
        assert len(rows(pilot, "#topics")) == 3

    on_screen(test)


def test_many_rows_are_cut_and_stay_where_they_were_scrolled_to() -> None:
    async def test(pilot: Pilot[None], broker: Broker) -> None:
        broker.answer = look_at(3 * ROWS)
        table = pilot.app.query_one("#topics", DataTable)
        await until(pilot, lambda: table.row_count == ROWS)
        table.focus()
        await until(pilot, lambda: table.has_focus and table.max_scroll_y > 0)  # else the key does nothing
        await pilot.press("pagedown")
        await until(pilot, lambda: table.scroll_y == table.scroll_target_y > 0)
        where = table.scroll_y
        broker.answer = look_at(4 * ROWS)
        await until(pilot, lambda: rows(pilot, "#topics")[0][0] == f"t{4 * ROWS - 1:04}")
        await pilot.pause()
        assert table.scroll_y == where

    on_screen(test)


def test_a_pause_holds_the_numbers() -> None:
    async def test(pilot: Pilot[None], broker: Broker) -> None:
        await until(pilot, lambda: "cluster it" in head(pilot))
        await pilot.press("p")
        await until(pilot, lambda: "paused" in head(pilot))
        await pilot.press("p")
        await until(pilot, lambda: "paused" not in head(pilot))
        broker.answer = look_at(1)
        await until(pilot, lambda: len(rows(pilot, "#topics")) == 1)

    on_screen(test)


@pytest.mark.parametrize("gone", ["#head", "#topics", "#groups"])
def test_an_answer_that_comes_while_its_parts_are_taken_away_is_no_error(gone: str) -> None:
    async def test(pilot: Pilot[None], broker: Broker) -> None:
        await until(pilot, lambda: len(rows(pilot, "#groups")) == 2)
        await pilot.app.query_one(gone).remove()
        broker.answer = look_at(3)
        await until(pilot, lambda: screen_of(pilot)._last == broker.answer)
        await pilot.pause(0.1)

    on_screen(test)


def test_windows_may_be_tiny() -> None:
    async def test(pilot: Pilot[None], broker: Broker) -> None:
        await until(pilot, lambda: len(rows(pilot, "#groups")) == 2)
        await pilot.resize_terminal(10, 3)
        await pilot.resize_terminal(200, 60)
        await until(pilot, lambda: "cluster it" in head(pilot))

    on_screen(test, lines=5)


def test_q_ends_it_while_a_look_waits() -> None:
    async def test(pilot: Pilot[None], broker: Broker) -> None:
        await pilot.press("q")

    assert on_screen(test).return_code == 0
