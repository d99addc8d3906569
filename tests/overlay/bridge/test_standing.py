"""Users of the broker of a bridge go on when it was stopped and started again."""

from __future__ import annotations

from pathlib import Path

import pytest
from overlay.bridge import kafka

from dafka import Broker
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.overlay.bridge.standing import Standing


def test_calls_go_to_the_broker_that_is_there(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker").start()
    try:
        standing = Standing(broker.bootstrap_servers, kafka.SECONDS, {})

        def topics() -> set[str]:
            return set(standing.hub.run(lambda: standing.broker.metadata(None).topics))

        assert topics() == set()
        broker.stop()
        with pytest.raises(BrokerStoppedError):
            topics()
        broker.start()
        kafka.write(broker.bootstrap_servers, "t", [b"1"])

        def is_there() -> bool:
            try:
                return topics() == {"t"}
            except BrokerStoppedError:
                return False

        kafka.until(is_there, "the topic of the broker that was started again")
        standing.close()
    finally:
        broker.stop()
