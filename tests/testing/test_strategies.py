"""Plans of hypothesis: a failing one is shrunk to the fault that matters."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from compat.kafka import KafkaProducer
from dafka.testing import Fault, chaos
from dafka.testing.strategies import faults, plans
from dafka.testing.torture.generator import Generator
from dafka.testing.torture.kinds import KINDS

POINTS = ["produce t-0", "fetch t-0", "commit g", "join g", "sync g", "transaction x"]
FEW = settings(deadline=None, database=None, derandomize=True, max_examples=25)


def send(plan: list[Fault], idempotent: bool) -> list[bytes | None]:
    with (
        chaos.plan(plan) as broker,
        KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            retry_backoff_ms=1,
            acks="all",
            enable_idempotence=idempotent,
        ) as producer,
    ):
        for number in range(3):
            producer.send("t", b"%d" % number).get(100)
        return broker.values("t")


@FEW
@given(plan=plans(["produce t-0"], level="broker", calls=3, max_size=3))
def test_an_idempotent_producer_writes_each_record_once_whatever_the_plan(plan):
    assert send(plan, idempotent=True) == [b"0", b"1", b"2"]


def test_a_plan_that_makes_a_producer_write_twice_is_found_and_is_one_fault():
    plan = find(
        plans(["produce t-0"], level="broker", calls=3),
        lambda plan: len(send(plan, idempotent=False)) > 3,
        settings=settings(FEW, max_examples=200),
    )
    assert len(plan) == 1 and KINDS[plan[0].kind].operations[0] == "produce"


@FEW
@given(plan=plans(POINTS))
def test_every_plan_can_be_made_and_has_only_what_chaos_chooses_by_itself(plan):
    chosen = Generator(0, "everything")
    for fault in plan:
        operation = fault.point.partition(" ")[0]
        assert fault.kind in dict(chosen._kinds[operation]) and 1 <= fault.call <= 10
    chaos.plan(plan)


@settings(FEW, suppress_health_check=list(HealthCheck))
@given(fault=faults(["produce t-0"], kinds=["half_open"], calls=2))
def test_kinds_that_are_named_are_chosen_though_chaos_does_not(fault):
    assert fault.kind == "half_open" and fault.call in (1, 2)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (["produce"], {}, "is not a point"),
        (["produce t"], {}, "names no partition"),
        ([], {}, "at no point"),
        (["join g"], {"kinds": ["denied"]}, "at join g"),
        (["produce t-0"], {"kinds": ["denied"], "level": "network"}, "not a fault of that level"),
        (["produce t-0"], {"level": "some"}, "a level is one of"),
        (["produce t-0"], {"calls": 0}, "counted from 1"),
    ],
)
def test_invalid_arguments_are_refused(arguments, options, error):
    with pytest.raises(ValueError, match=error):
        plans(arguments, **options)


class Sending(RuleBasedStateMachine):
    """A producer and a model, with faults of a plan that hypothesis makes first."""

    @initialize(plan=plans(["produce t-0"], level="network", calls=6, max_size=3))
    def begin(self, plan: list[Fault]) -> None:
        self.broker = chaos.plan(plan).start()
        self.producer = KafkaProducer(bootstrap_servers=self.broker.bootstrap_servers, retry_backoff_ms=1)
        self.model: list[bytes] = []

    @rule()
    def send(self) -> None:
        self.model.append(b"%d" % len(self.model))
        self.producer.send("t", self.model[-1]).get(100)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert self.broker.values("t") == self.model

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.producer.close()
            self.broker.stop()


def test_a_state_machine_of_hypothesis_takes_plans():
    run_state_machine_as_test(Sending, settings=settings(FEW, max_examples=5, stateful_step_count=6))
