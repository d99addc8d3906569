"""A producer whose address is given: it asks where its partition ends, checks stores, and meets rivals."""

from __future__ import annotations

import pytest

from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.commands import Ack, Claim, ConsumerHello, DirectHead, End, Fetch, Head, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.claim import BATCHES, PartitionClaim, Position
from dafka.roles.known_stores import KnownStores
from dafka.roles.outputs import Subscribe
from dafka.roles.producer import ProducerRole, checksum_of

ME, OTHER = b"A" * 32, b"Z" * 32
RUN, LOWER, HIGHER = b"5" * 32, b"1" * 32, b"9" * 32  # producers of the partition ME
STORE, STORE2 = b"6" * 32, b"7" * 32
TOPIC = b"pose"


class Bench:
    """A producer and the stores that it is connected to."""

    def __init__(self, *stores: bytes, plain: tuple[bytes, ...] = (), min_stores: int = 1) -> None:
        self.claim = PartitionClaim(TOPIC, ME, RUN, min_stores=min_stores)
        self.role = ProducerRole(TOPIC, ME, min_stores=min_stores, claim=self.claim)
        self.stores = KnownStores()
        self.role.know_stores(self.stores)
        self.said: list[object] = []
        self.now = 0.0
        for store in (*stores, *plain):
            self.stores.subscribed(b"W" + store)
        for store in stores:
            self.stores.subscribed(b"T" + store)

    def hear(self, *commands: object) -> list[object]:
        said = [output for command in commands for output in self.role.receive(self.now, command)]
        self.said += said
        return said

    def run(self, seconds: float) -> list[object]:
        said: list[object] = []
        until = self.now + seconds
        while self.now < until:
            self.now = round(self.now + 0.25, 2)
            said += self.role.tick(self.now)
        self.said += said
        return said

    def begin(self, *ends: End, seconds: float = 0.75) -> int:
        self.run(0.25)
        self.hear(*ends)
        self.run(seconds)
        assert self.claim.found is not None
        self.role.begin(self.now, self.claim.found)
        return self.role.next_sequence


def end(sequence: int, store: bytes = STORE, **more: int) -> End:
    return End(RUN, ME, TOPIC, sequence, store, **more)


def test_it_is_subscribed_to_claims_and_to_what_answers_them():
    assert Bench().role.start()[3:] == [
        Subscribe(octet) for octet in (b"C" + ME, b"N" + RUN, b"E" + RUN, b"D" + RUN)
    ]


def test_it_claims_until_it_knows_where_to_go_on():
    bench = Bench(STORE)
    said = bench.run(1.0)
    assert said == 4 * [Claim(ME, RUN, TOPIC, 0, numbering=False)]
    assert bench.claim.found is None
    with pytest.raises(ValueError):
        bench.role.publish(bench.now, [b"too early"])
    bench.hear(end(7, offset=12, kind=BATCHES))
    bench.run(0.25)
    assert bench.claim.found is None  # something else may come
    bench.run(0.5)
    assert bench.claim.found == Position(7, 12, BATCHES)


def test_a_partition_that_no_store_has_begins_at_0():
    assert Bench(STORE).begin(end(0)) == 0


def test_it_goes_on_behind_the_store_that_has_most():
    bench = Bench(STORE, STORE2)
    assert bench.begin(end(7), end(9, STORE2)) == 9
    assert bench.role.publish(bench.now, [b"x"]) == Run(None, ME, TOPIC, 9, [b"x"])
    assert bench.role.unacknowledged == 1


def test_it_waits_for_every_store_that_is_connected():
    bench = Bench(STORE, STORE2)
    bench.run(0.25)
    bench.hear(end(7))
    bench.run(60.0)
    assert bench.claim.found is None
    bench.hear(end(7), end(9, STORE2))
    bench.run(0.75)
    assert bench.claim.found == Position(9, 0)


def test_as_many_stores_answer_as_have_to_acknowledge():
    bench = Bench(STORE, min_stores=2)
    bench.run(0.25)
    bench.hear(end(7))
    bench.run(60.0)
    assert bench.claim.found is None


def test_numbers_that_a_consumer_has_seen_are_not_given_again():
    bench = Bench(STORE)
    bench.run(0.25)
    bench.hear(end(7, offset=20), end(9, b""))
    bench.run(0.75)
    assert bench.claim.found == Position(9, 20, witnessed=2)


def test_a_store_that_knows_no_claim_names_its_heads_or_has_none_of_the_partition():
    bench = Bench(plain=(STORE,))
    said = bench.run(1.0)
    assert ConsumerHello(STORE, RUN, (TOPIC,)) in said
    bench.run(1.0)
    assert bench.claim.found is None
    bench.run(2.0)
    assert bench.claim.found == Position(0, 0)


@pytest.mark.parametrize(
    ("content", "position"),
    [
        (b"raw", Position(5, 5, 1)),
        (encode_batch([(0, None, b"a", ()), (0, None, b"b", ())], base_offset=30), Position(5, 32, BATCHES)),
    ],
)
def test_the_last_message_of_a_store_that_knows_no_claim_is_read(content, position):
    bench = Bench(plain=(STORE,))
    bench.run(0.25)
    bench.hear(DirectHead(RUN, ME, TOPIC, 4))
    assert Fetch(ME, RUN, TOPIC, 4, 1) in bench.run(4.0)
    assert bench.claim.found is None
    bench.role.receive_run(bench.now, Run(RUN, ME, TOPIC, 4, [content, b"one more than was asked for"]))
    bench.run(1.0)
    assert bench.claim.found == position


def test_heads_of_an_earlier_producers_partition_are_told_and_its_records_left_to_stores():
    bench = Bench(STORE)
    bench.begin(end(7))
    bench.run(1.0)
    assert Head(ME, TOPIC, 6) in bench.said
    assert bench.role.receive(bench.now, Fetch(ME, OTHER, TOPIC, 3, 9)) == []
    bench.role.publish(bench.now, [b"x", b"y"])
    assert bench.role.receive(bench.now, Fetch(ME, OTHER, TOPIC, 7, 9)) == [
        Run(OTHER, ME, TOPIC, 7, [b"x", b"y"])
    ]


def test_an_answer_counts_for_a_moment_only():
    """A store says nothing while an earlier producer's records are on their way into its log."""
    bench = Bench(STORE, STORE2)
    bench.run(0.25)
    bench.hear(end(7))
    bench.run(0.75)
    bench.hear(end(7, STORE2))
    bench.run(5.0)
    assert bench.claim.found is None
    bench.hear(end(7), end(8, STORE2))
    bench.run(0.75)
    assert bench.claim.found == Position(8, 0)


# -- whose records a store acknowledges -----------------------------------------------------------------


def numbering(*records: bytes, stores: tuple[bytes, ...] = (STORE,), min_stores: int = 1) -> Bench:
    bench = Bench(*stores, min_stores=min_stores)
    bench.begin(*(end(10, store) for store in stores))
    bench.role.publish(bench.now, list(records))
    return bench


def same(first: int, *records: bytes, store: bytes = STORE, **more: int) -> End:
    """What a store says that has these records, and up to ``sequence`` more."""
    behind = first + len(records)
    return end(
        **{"sequence": behind, "store": store, **more},
        first=first,
        count=len(records),
        checksum=checksum_of(records),
    )


ASKS = Claim(ME, RUN, TOPIC, 10, numbering=True)


def test_an_ack_counts_when_the_store_has_summed_up_the_same_contents():
    bench = numbering(b"a", b"b")
    assert bench.hear(Ack(ME, TOPIC, 11, STORE)) == [ASKS]
    assert bench.role.unacknowledged == 2
    assert bench.hear(same(10, b"a", b"b")) == []
    assert bench.role.unacknowledged == 0


@pytest.mark.parametrize("records", [(b"a", b"B"), (b"", b"ab"), (b"b", b"a")])
def test_a_store_that_had_nothing_and_got_an_earlier_producers_records_is_not_believed(records):
    """They were still on their way to it, or another store that was away has given them to it."""
    bench = numbering(b"a", b"b", b"c")
    bench.hear(Ack(ME, TOPIC, 11, STORE))
    bench.hear(same(10, *records))
    assert (bench.role.unacknowledged, bench.role.disputed) == (3, 12)
    bench.hear(Ack(ME, TOPIC, 12, STORE), same(10, b"a", b"b", b"c"))
    assert bench.role.unacknowledged == 3


def test_records_of_both_producers_in_one_store_count_up_to_the_first_that_is_not_this_ones():
    bench = numbering(*[b"x"] * 1500)
    bench.hear(Ack(ME, TOPIC, 1509, STORE))
    bench.hear(same(10, *[b"x"] * 1000, sequence=1510))
    assert bench.role.unacknowledged == 500
    bench.hear(same(1010, *[b"other"] * 500))
    assert (bench.role.unacknowledged, bench.role.disputed) == (500, 1510)


def test_another_store_than_the_one_with_other_records_is_believed():
    bench = numbering(b"a", b"b", b"c", stores=(STORE, STORE2))
    bench.hear(same(10, b"a", b"B", store=STORE2))
    bench.hear(Ack(ME, TOPIC, 11, STORE2))
    assert (bench.role.unacknowledged, bench.role.disputed) == (3, 12)
    bench.hear(Ack(ME, TOPIC, 12, STORE), same(10, b"a", b"b", b"c"))
    assert bench.role.unacknowledged == 0


def test_a_claim_too_large_for_one_answer_is_asked_for_piece_by_piece():
    bench = numbering(*[b"x"] * 2500)
    claims = bench.hear(Ack(ME, TOPIC, 2509, STORE))
    while claims:
        (claim,) = claims
        count = min(1000, 2510 - claim.sequence)
        claims = bench.hear(same(claim.sequence, *[b"x"] * count, sequence=2510))
    assert bench.role.unacknowledged == 0
    assert bench.said.count(ASKS) == 1


def test_the_question_is_repeated_until_it_is_answered_and_not_for_every_ack():
    bench = numbering(b"a", b"b")
    bench.run(1.0)
    assert bench.hear(*5 * [Ack(ME, TOPIC, 11, STORE)]) == [ASKS]
    assert bench.run(1.0).count(ASKS) == 4
    bench.hear(same(10, b"a", b"b"))
    assert ASKS not in bench.run(10.0)


def test_nobody_is_asked_for_the_sake_of_a_store_that_is_gone():
    bench = numbering(b"a", b"b")
    bench.hear(Ack(ME, TOPIC, 11, STORE))
    bench.stores.unsubscribed(b"W" + STORE)
    assert ASKS not in bench.run(10.0)


def test_as_many_stores_are_compared_as_have_to_acknowledge():
    bench = numbering(b"a", b"b", stores=(STORE, STORE2), min_stores=2)
    assert bench.hear(Ack(ME, TOPIC, 11, STORE)) == []
    assert bench.hear(Ack(ME, TOPIC, 10, STORE2)) == [ASKS]
    bench.hear(same(10, b"a", b"b"), same(10, b"a", store=STORE2))
    assert bench.role.unacknowledged == 1


def test_records_that_retention_has_removed_from_a_store_need_not_be_compared():
    bench = numbering(b"a", b"b", b"c", b"d")
    bench.hear(Ack(ME, TOPIC, 12, STORE))
    bench.hear(same(12, b"c"))
    assert bench.role.unacknowledged == 1
    bench.hear(Ack(ME, TOPIC, 13, STORE), end(14, first=14))
    assert bench.role.unacknowledged == 0


def test_answers_about_what_has_been_let_go_of_say_nothing():
    bench = numbering(b"a", b"b", b"c")
    bench.hear(Ack(ME, TOPIC, 10, STORE), same(10, b"a"), Ack(ME, TOPIC, 11, STORE))
    bench.hear(same(10, b"a", b"B"))
    assert (bench.role.unacknowledged, bench.role.disputed) == (2, 0)
    bench.hear(same(11, b"b"))
    assert bench.role.unacknowledged == 1


def test_a_checksum_does_not_depend_on_how_many_are_summed_up_at_a_time():
    assert checksum_of([b"x"] * 2500) == checksum_of(b"x" for _ in range(2500))
    assert checksum_of([b"ab", b""]) != checksum_of([b"a", b"b"]) != checksum_of([b"", b"ab"])


def test_a_store_that_has_more_than_was_ever_sent_is_an_earlier_producers():
    bench = numbering(b"a")
    bench.hear(end(50, STORE2))
    assert bench.role.disputed == 50


def test_a_store_that_turns_up_is_asked_at_once():
    bench = numbering(b"a")
    assert bench.role.peer_subscribed(bench.now, b"C") == [Claim(ME, RUN, TOPIC, 10, numbering=True)]
    assert bench.role.peer_subscribed(bench.now, b"C" + OTHER) == []


def test_stores_that_lag_behind_the_first_record_take_nothing_back():
    bench = Bench(STORE, STORE2, min_stores=2)
    assert bench.begin(end(10), end(4, STORE2)) == 10
    bench.role.publish(bench.now, [b"a"])
    bench.hear(Ack(ME, TOPIC, 10, STORE), same(10, b"a"), Ack(ME, TOPIC, 7, STORE2))
    assert (bench.role.first_unacknowledged, bench.role.unacknowledged) == (10, 1)
    bench.hear(Ack(ME, TOPIC, 10, STORE2), same(10, b"a", store=STORE2))
    assert bench.role.unacknowledged == 0


def test_records_that_only_consumers_have_seen_are_told_to_be_gone():
    bench = Bench(STORE)
    bench.run(0.25)
    bench.hear(end(7), end(9, b""))
    bench.run(0.75)
    bench.role.begin(bench.now, bench.claim.found)
    bench.role.publish(bench.now, [b"x"])
    assert bench.role.receive(bench.now, Fetch(ME, STORE, TOPIC, 7, 9)) == [Trimmed(STORE, ME, TOPIC, 9, ME)]


# -- rivals -----------------------------------------------------------------------------------------------


def claims(bench: Bench, rival: bytes, *, numbering: bool) -> None:
    for _ in range(4):
        bench.hear(Claim(ME, rival, TOPIC, 0, numbering))
        bench.run(0.25)


@pytest.mark.parametrize(
    ("mine", "rival", "its", "lost"),
    [
        (False, HIGHER, True, True),
        (False, LOWER, True, True),
        (False, HIGHER, False, False),
        (False, LOWER, False, True),
        (True, HIGHER, False, False),
        (True, LOWER, False, False),
        (True, HIGHER, True, True),
        (True, LOWER, True, True),
    ],
)
def test_one_of_two_producers_of_a_partition_goes_on(mine, rival, its, lost):
    bench = Bench(STORE)
    if mine:
        bench.begin(end(3))
    claims(bench, rival, numbering=its)
    assert bench.claim.rival == (rival if lost else b"")
    assert list(bench.claim.rivals) == [rival]


def test_a_rival_hears_of_this_one():
    bench = Bench(STORE)
    bench.begin(end(3))
    bench.run(5.0)
    assert bench.hear(Claim(ME, HIGHER, TOPIC, 0, numbering=False)) == [
        Claim(ME, RUN, TOPIC, 3, numbering=True)
    ]


def test_the_last_word_of_a_producer_that_was_closed_is_not_a_rival():
    bench = Bench(STORE)
    bench.run(0.25)
    bench.hear(Claim(ME, HIGHER, TOPIC, 0, numbering=True))
    bench.run(5.0)
    bench.hear(end(3))
    bench.run(0.75)
    assert (bench.claim.rival, bench.claim.found) == (b"", Position(3, 0))


def test_claims_to_other_partitions_and_its_own_are_not_rivals():
    bench = Bench(STORE)
    bench.run(0.25)
    for _ in range(5):
        bench.hear(
            Claim(OTHER, HIGHER, TOPIC, 0, numbering=True), Claim(ME, HIGHER, b"posed", 0, numbering=True)
        )
        bench.hear(Claim(ME, RUN, TOPIC, 0, numbering=True))
        bench.run(0.25)
    assert not bench.claim.rivals


def test_one_that_has_given_way_says_nothing_more():
    bench = Bench(STORE)
    bench.begin(end(3))
    claims(bench, LOWER, numbering=True)
    bench.said.clear()
    bench.run(30.0)
    assert bench.said == []
