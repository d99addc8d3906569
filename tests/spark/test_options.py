"""Options: Spark's names and meanings, and what is refused before anything is connected."""

from __future__ import annotations

import pytest

from dafka.spark.errors import OptionError
from dafka.spark.options import EARLIEST, LATEST, Position, Subscription, read_options, write_options

SERVERS = {"kafka.bootstrap.servers": "host:9092"}
READ = {**SERVERS, "subscribe": "t"}


@pytest.mark.parametrize(
    ("codec", "library"), [("snappy", "python-snappy"), ("lz4", "lz4"), ("zstd", "zstandard")]
)
def test_a_codec_that_is_not_there_is_refused_with_its_library(codec, library, monkeypatch):
    monkeypatch.setattr("dafka.spark.options.is_available", lambda name: False)
    with pytest.raises(OptionError, match=f"{codec} is not installed: pip install {library}$"):
        write_options({**SERVERS, "kafka.compression.type": codec})


def test_servers_go_with_and_without_the_prefix():
    for name in ("kafka.bootstrap.servers", "bootstrap.servers", "Kafka.Bootstrap.Servers"):
        assert read_options({name: "a:1, b:2", "subscribe": "t"}).access.servers == "a:1,b:2"


def test_defaults_are_sparks():
    options = read_options(READ)
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert not options.read_committed
    assert options.starting is None
    assert options.max_trigger_delay == 900
    assert write_options(SERVERS).acks == -1


@pytest.mark.parametrize(
    ("options", "subscription"),
    [
        ({"subscribe": "a,b , a"}, Subscription(topics=("a", "b"))),
        ({"subscribePattern": " a.* "}, Subscription(pattern="a.*")),
        ({"assign": '{"a": [1, 0], "b": [2]}'}, Subscription(partitions=(("a", 1), ("a", 0), ("b", 2)))),
    ],
)
def test_topics_and_partitions_to_read(options, subscription):
    assert read_options({**SERVERS, **options}).subscription == subscription


@pytest.mark.parametrize(
    ("options", "starting"),
    [
        ({"startingOffsets": "Earliest"}, Position("startingOffsets", everywhere=EARLIEST)),
        ({"startingOffsets": "latest"}, Position("startingOffsets", everywhere=LATEST)),
        (
            {"startingOffsets": '{"t": {"0": 5, "1": -1, "2": -2}}'},
            Position("startingOffsets", offsets={("t", 0): 5, ("t", 1): -1, ("t", 2): -2}),
        ),
        ({"startingTimestamp": "1000"}, Position("startingTimestamp", timestamp=1000)),
        (
            {"startingOffsetsByTimestamp": '{"t": {"0": 1000}}'},
            Position("startingOffsetsByTimestamp", timestamps={("t", 0): 1000}),
        ),
        (
            {
                "startingTimestamp": "1",
                "startingOffsetsByTimestamp": '{"t": {"0": 2}}',
                "startingOffsets": "latest",
            },
            Position("startingTimestamp", timestamp=1),
        ),
    ],
)
def test_offsets_at_which_reading_begins(options, starting):
    assert read_options({**READ, **options}).starting == starting


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900), ("30s", 30), ("500ms", 0.5), ("2 hours", 7200), ("1 minute", 60), ("1d", 86400)],
)
def test_durations(text, seconds):
    assert read_options({**READ, "maxTriggerDelay": text}).max_trigger_delay == seconds


def test_settings_of_kafkas_clients_without_effect_here_are_taken():
    options = {
        "kafka.client.id": "x",
        "kafka.group.id": "g",
        "kafka.max.poll.records": "7",
        "kafka.retry.backoff.max.ms": "1000",
        "kafka.metrics.recording.level": "INFO",
        "groupIdPrefix": "p",
    }
    assert read_options({**READ, **options}) == read_options(READ)


def test_batches_are_as_large_as_asked_and_no_larger_than_a_request():
    assert write_options({**SERVERS, "kafka.batch.size": "1000000"}).batch_bytes == 1_000_000
    small = {"kafka.batch.size": "1000000", "kafka.max.request.size": "5000"}
    assert write_options({**SERVERS, **small}).batch_bytes == 5000


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"startingofset": "x"}, "unknown option 'startingofset'; did you mean startingOffsets?"),
        ({"fail.on.dataloss": "x"}, "unknown option 'fail.on.dataloss'; did you mean failOnDataLoss?"),
        ({"kafka.isolation.levle": "x"}, "did you mean kafka.isolation.level?"),
        ({"isolation.level": "x"}, "did you mean kafka.isolation.level?"),
        ({"kafka.subscribe": "x"}, "did you mean subscribe?"),
        ({"kafka.fail.on.data.loss": "x"}, "did you mean failOnDataLoss?"),
        ({"topic": "x"}, "unknown option 'topic'"),
        ({"kafka.auto.offset.reset": "latest"}, "is not to be set"),
        ({"kafka.sasl.kerberos.service.name": "x"}, "is not supported; of security there are kafka.sasl"),
        ({"kafka.security.protocol": "TLS"}, "kafka.security.protocol='TLS' is not one of PLAINTEXT"),
        ({"assign": '{"t": [0]}'}, "exactly one of the options"),
        ({"bootstrap.servers": "other:1"}, "contradict each other"),
        ({"kafka.bootstrap.servers": "host"}, None),
        (
            {"kafka.bootstrap.servers": "host:port"},
            "expected HOST:PORT, several with commas, not 'host:port'",
        ),
        ({"kafka.bootstrap.servers": " , "}, "expected HOST:PORT"),
        ({"subscribe": "a,,b"}, "expected topics with commas between them"),
        ({"failOnDataLoss": "yes"}, "option failOnDataLoss: expected true or false, not 'yes'"),
        ({"includeHeaders": "1"}, "expected true or false"),
        ({"startingOffsets": "first"}, 'expected {"topic"'),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "-3 is not an offset"),
        ({"startingOffsets": '{"t": {"x": 3}}'}, 'expected {"topic"'),
        ({"startingOffsets": '{"t": {"0": 1.5}}'}, 'expected {"topic"'),
        ({"startingOffsets": '{"t": [0]}'}, 'expected {"topic"'),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "a timestamp below 0"),
        ({"startingTimestamp": "today"}, "expected a number, not 'today'"),
        ({"maxOffsetsPerTrigger": "0"}, "expected a number above 0"),
        ({"maxOffsetsPerTrigger": "-5"}, "expected a number"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "is more than maxOffsetsPerTrigger (5)"),
        ({"minPartitions": "many"}, "expected a number"),
        ({"maxTriggerDelay": "soon"}, "expected a time such as 15m or 30s"),
        ({"kafka.isolation.level": "all"}, "expected read_uncommitted or read_committed"),
        ({"startingOffsetsByTimestampStrategy": "no"}, "expected error or latest"),
    ],
)
def test_bad_options_of_a_read_are_named(options, reason):
    if reason is None:  # Kafka's default port
        assert read_options({**READ, **options}).access.servers == "host"
        return
    with pytest.raises(OptionError) as caught:
        read_options({**READ, **options})
    assert reason in str(caught.value)


def test_an_invalid_pattern_is_refused():
    with pytest.raises(OptionError, match="is not a valid regular expression"):
        read_options({**SERVERS, "subscribePattern": "("})


@pytest.mark.parametrize("name", ["qqqqqqqq", "nonsense", "kafka.nonsense"])
def test_a_name_that_is_like_no_other_has_no_hint(name):
    with pytest.raises(OptionError, match=f"unknown option '{name}'$"):
        read_options({**READ, name: "x"})


@pytest.mark.parametrize("order", [1, -1])
def test_servers_said_twice_and_not_alike_contradict_each_other(order):
    servers = {"bootstrap.servers": "a:1", "kafka.bootstrap.servers": "b:1"}
    with pytest.raises(OptionError, match=r"^bootstrap\.servers and kafka\.bootstrap\.servers contradict"):
        read_options(dict([*servers.items()][::order]) | {"subscribe": "t"})


@pytest.mark.parametrize("missing", ["kafka.bootstrap.servers", "subscribe"])
def test_an_error_names_the_missing_option(missing):
    options = {name: value for name, value in READ.items() if name != missing}
    with pytest.raises(OptionError, match=missing):
        read_options(options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribe": "t"}, "unknown option 'subscribe'"),
        ({"topic": " "}, "the name of a topic is not empty"),
        ({"kafka.acks": "2"}, "expected all, -1, 1 or 0"),
        ({"kafka.compression.type": "rar"}, "expected none, gzip, snappy, lz4 or zstd"),
        ({"exactlyOnce": "true", "kafka.acks": "0"}, "exactlyOnce needs kafka.acks=all"),
    ],
)
def test_bad_options_of_a_write_are_named(options, reason):
    with pytest.raises(OptionError) as caught:
        write_options({**SERVERS, **options})
    assert reason in str(caught.value)
