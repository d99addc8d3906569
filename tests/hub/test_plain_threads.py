"""Threads with green threads of their own, and those without, which wait as a whole."""

from __future__ import annotations

import threading

import gevent

from dafka.hub.hub import get_hub, is_plain_thread


def test_a_wait_keeps_the_whole_thread_only_where_it_has_no_green_threads():
    def look() -> None:
        seen.append((is_plain_thread(), get_hub().waiter().is_native))

    def look_without_and_with() -> None:
        look()
        gevent.sleep(0)
        look()

    seen: list[tuple[bool, bool]] = []
    thread = threading.Thread(target=look_without_and_with)
    thread.start()
    thread.join()
    assert seen == [(True, True), (False, False)]
