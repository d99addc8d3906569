"""Client libraries beneath chaos: at every level they do what they promise.

One seed by default, without Java; in the long form as many as DAFKA_TEST_CHAOS_SEEDS says, with Java.
"""

from __future__ import annotations

import os

import pytest
from clients.adapters import CLIENTS
from clients.adapters.client import Transaction, TransactionalClient
from clients.records import Record

from dafka.testing import chaos
from dafka.testing.torture.kinds import LEVELS

LONG = "DAFKA_TEST_CHAOS_SEEDS"
SEEDS = int(os.environ.get(LONG, "1"))
# kcat ends when its only broker is away.
CLIENTS_HERE = [client for client in CLIENTS if client.name != "kcat"]
RECORDS = [Record(b"value %d" % number, b"%d" % number) for number in range(8)]

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("clients")]


@pytest.fixture(params=CLIENTS_HERE, ids=lambda client: client.name)
def client(request):
    if request.param.name == "java" and LONG not in os.environ:
        pytest.skip(f"dear; set {LONG}=20")
    missing = request.param.missing()
    if missing:
        pytest.skip(missing)
    return request.param


def kept(records):
    return sorted((record.key, record.value) for record in records)


@pytest.mark.parametrize("level", LEVELS)
def test_an_idempotent_producer_writes_each_record_once_and_a_consumer_reads_all(client, level):
    for seed in range(SEEDS):
        # What may not be retried is the program's business, and an error of the producer.
        with chaos(seed, level, rate=0.2, weights={"denied": 0} if level == "everything" else None) as broker:
            broker.create_topic("t")
            client.produce(broker.bootstrap_servers, "t", RECORDS, idempotent=True)
            assert kept(broker.records("t")) == kept(RECORDS), broker.history_table()
            read = client.consume(broker.bootstrap_servers, "t", 1)
            assert kept(read) == kept(RECORDS), broker.history_table()


@pytest.mark.parametrize("level", ["network", "broker"])
def test_a_transactional_producer_commits_what_it_committed_and_nothing_else(client, level):
    if not isinstance(client, TransactionalClient):
        pytest.skip("it has no transactions")
    for seed in range(SEEDS):
        with chaos(seed, level, rate=0.2) as broker:
            broker.create_topic("t")
            kept_, aborted = RECORDS[:4], RECORDS[4:]
            transactions = [Transaction(kept_, True), Transaction(aborted, False)]
            client.transact(broker.bootstrap_servers, "t", "tx", transactions)
            read = client.consume(broker.bootstrap_servers, "t", 1, committed=True)
            assert kept(read) == kept(kept_), broker.history_table()
