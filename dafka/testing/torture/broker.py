"""``chaos(seed)``: a TestBroker that misbehaves as real clusters do, reproducibly."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast
from weakref import WeakMethod

from dafka.broker.interface.broker import BrokerInterface
from dafka.testing.broker import TestBroker
from dafka.testing.faults import FaultyBroker
from dafka.testing.torture.applying import ChaoticBroker
from dafka.testing.torture.assertions import AssertionsOfBroker
from dafka.testing.torture.connections import ChaoticListener
from dafka.testing.torture.deciding import Chaos
from dafka.testing.torture.generator import RATE, Generator
from dafka.testing.torture.history import Call, History, table
from dafka.testing.torture.plan import Fault, Faults, Plan

_T = TypeVar("_T")
_Chaos = TypeVar("_Chaos", bound="chaos")


class chaos(TestBroker, AssertionsOfBroker):  # as it is read: with chaos(7) as broker
    """A :class:`~dafka.testing.TestBroker` whose clients meet faults, the same ones for the same seed.

    ``level``: which faults, one of :data:`~dafka.testing.torture.kinds.LEVELS`. ``rate``: the part of calls
    that meet one. ``weights``: how often kinds are chosen, compared with others, by their names in
    :data:`~dafka.testing.torture.kinds.KINDS`; 0 is never. The other arguments are TestBroker's.

    Clients of every kind meet them: those of ``compat.kafka`` in this process, and those that connect by TCP.
    The test's own looking and filling go past them, as with every TestBroker. Raises ValueError for a level,
    a rate or a kind that there is not.
    """

    __test__ = False

    def __init__(
        self,
        seed: int = 0,
        level: str = "everything",
        *,
        rate: float = RATE,
        weights: Mapping[str, float] | None = None,
        path: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        self._faults: Faults = Generator(seed, level, rate=rate, weights=weights)
        self._chaos = Chaos(self._faults, History())
        super().__init__(path, **options)

    @classmethod
    def plan(cls: type[_Chaos], faults: Iterable[Fault], **options: Any) -> _Chaos:
        """A broker with the faults of a list, such as :attr:`faults` of another one; TestBroker's options.

        Raises ValueError for two faults of the same call.
        """
        plan = Plan(faults)
        broker = cls(**options)
        broker._faults = plan
        broker._chaos = Chaos(plan, broker._chaos.history)
        return broker

    @property
    def faults(self) -> list[Fault]:
        """The faults that have happened, the first one first, each with the call that it met."""
        return self._chaos.history.faults()

    @property
    def _history(self) -> History:
        return self._chaos.history

    @property
    def history(self) -> list[Call]:
        """The calls of all clients, the first one first, and what they were told; the last 100 000."""
        return self._chaos.history.calls()

    def history_table(self) -> str:
        """:attr:`history` as a table by time and client."""
        return table(self.history)

    def calm(self) -> None:
        """No faults from now on: calls under way may end in peace."""
        self._hub.run(setattr, self._chaos, "calm", True)

    def __repr__(self) -> str:
        return f"<{self._faults!r}, {super().__repr__()}>"

    # -- inside: the test waits while a fault restarts the broker ------------------------------------

    @property
    def running(self) -> bool:
        return (self._chaos.restarting and not self._hub.here) or super().running

    def _state(self) -> Any:
        return super()._state() if self._hub.here else self._hub.run(self._started)

    def _started(self) -> Any:
        self._chaos.started.wait()
        return super()._state()

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._within(lambda broker: getattr(broker, method)(*args, **kwargs))

    def _within(self, work: Callable[[BrokerInterface], _T]) -> _T:
        return self._hub.run(self._chaos.repeated, lambda: work(self._faulty.inner))

    def _open(self) -> Any:
        state = super()._open()
        state.core = cast(Any, ChaoticBroker(state.core, self._chaos))
        # Weak: the broker that runs must not keep the program's object, which may be dropped.
        again = WeakMethod(self._begin_again)
        self._chaos.restart = lambda: cast(Any, again())(None)
        state.listener_class = ChaoticListener
        return state

    @property
    def _faulty(self) -> FaultyBroker:
        return cast(FaultyBroker, cast(ChaoticBroker, self._state().core).inner)
