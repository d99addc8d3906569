"""Brokers and nodes that their program dropped without closing them.

The part that holds files, sockets and green threads lives in the hub, which does not know the object in the
program's hands. So the end of that object is noticed here, and what it stood for is closed with a
ResourceWarning, as the standard library does it. Python shows that warning only where it is asked for, and
a user who misses a broker needs a reason that can be found, so it is logged, too.
"""

from __future__ import annotations

import logging
import os
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dafka.hub.hub import Hub, HubStoppedError

log = logging.getLogger(__name__)


def when_dropped(
    owner: object, hub: Hub, what: str, end: str, stop: Callable[..., Any], *args: Any
) -> Callable[[], object]:
    """Call ``stop(*args)`` in the hub if ``owner`` is dropped; neither may refer to it.

    ``what`` names the owner and ``end`` its method for closing it, both in the warning. Returns a function
    that calls it off, for when that method has been called.
    """
    finalizer = weakref.finalize(owner, _dropped, hub, os.getpid(), what, end, stop, args)
    finalizer.atexit = False
    return finalizer.detach


def _dropped(
    hub: Hub, pid: int, what: str, end: str, stop: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    # In whichever thread the garbage was found, in the middle of anything: nothing is waited for.
    if os.getpid() != pid:
        return  # the parent's
    with suppress(HubStoppedError):
        hub.post(hub.spawn, _stop, what, end, stop, args)
    warnings.warn(f"unclosed {what}: dropped without {end}", ResourceWarning, stacklevel=3)


def _stop(what: str, end: str, stop: Callable[..., Any], args: tuple[Any, ...]) -> None:
    log.warning("%s was dropped without %s: it is closed now; keep it as long as it is used", what, end)
    stop(*args)
