"""The seam for other protocols: a broker opens the front end in its options, and closes it before itself."""

from __future__ import annotations

import gc
import weakref

import pytest
from broker.clients import batch
from timing import until

from dafka import Broker
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.front_end import FrontEnd, FrontEndOptions
from dafka.hub.hub import get_hub
from dafka.zper import ZperOptions


class Telegraph(FrontEnd):
    """A front end that writes one record when it closes."""

    def __init__(self, broker, before, fails):
        self.broker, self.before, self.fails = broker, before, fails
        self.closed = []
        assert get_hub().here

    @property
    def addresses(self):
        return {"telegraph": "tcp://127.0.0.1:1"}

    @property
    def discarded(self):
        return {"illegible": 2}

    def metrics(self):
        return {"zper_connections": 3}

    def close(self):
        self.closed.append(self.broker.produce({("wires", 0): [batch(b"last words")]})["wires", 0].error)
        if self.fails:
            raise OSError("the wire is cut")


class TelegraphOptions(FrontEndOptions):
    def __init__(self, refused=False, fails=False):
        self.refused, self.fails = refused, fails

    def open(self, hub, broker, before, keys=None):
        if self.refused:
            raise OSError("the port is taken")
        return Telegraph(broker, before, self.fails)


def create(broker):
    get_hub().run(broker._state().core.create_topics, {"wires": TopicSpec(1)})


def test_a_broker_opens_its_front_end_and_closes_it_while_the_broker_still_takes_records():
    with Broker(zper=TelegraphOptions()) as broker:
        front_end = broker.zper
        assert front_end.addresses == {"telegraph": "tcp://127.0.0.1:1"}
        assert broker.metrics()["zper_connections"] == 3
        assert broker.discarded["illegible"] == broker.metrics()["discarded"]["illegible"] == 2
        create(broker)
    assert front_end.closed == [None]
    with pytest.raises(BrokerStoppedError):
        _ = broker.zper


def test_a_front_end_is_told_the_addresses_of_the_one_before_it():
    broker = Broker(zper=TelegraphOptions())
    with broker:
        assert broker.zper.before == {}
        create(broker)
    with broker:
        assert broker.zper.before == {"telegraph": "tcp://127.0.0.1:1"}
        create(broker)


@pytest.mark.parametrize("options", [TelegraphOptions(), ZperOptions()], ids=["a telegraph", "ZPER"])
def test_a_stopped_broker_keeps_nothing_of_its_front_end(options):
    broker = Broker(zper=options)
    with broker:
        create(broker)
        front_end = weakref.ref(broker.zper)
        core = weakref.ref(broker._state().core)
    until(lambda: gc.collect() is not None and front_end() is core() is None)


def test_a_front_end_that_cannot_open_leaves_no_broker_behind(tmp_path):
    for _ in range(2):  # the folder is not locked by the first attempt
        with pytest.raises(OSError, match="the port is taken"):
            Broker(tmp_path, zper=TelegraphOptions(refused=True)).start()
    with Broker(tmp_path):
        pass


def test_a_front_end_that_cannot_close_does_not_keep_the_folder(tmp_path):
    broker = Broker(tmp_path, listen="127.0.0.1:0", zper=TelegraphOptions(fails=True)).start()
    create(broker)
    with pytest.raises(OSError, match="the wire is cut"):
        broker.stop()
    with Broker(tmp_path):
        pass


def test_a_broker_without_the_option_has_no_front_end():
    with Broker() as broker:
        assert broker.zper is None


def test_an_option_that_is_not_a_front_end_is_named():
    with pytest.raises(ValueError, match=r"zper is dafka\.zper\.ZperOptions"):
        Broker(zper="tcp://*:5555")
