"""The configuration file: the block in ZPER's README, Java's syntax, and what is said about a wrong line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.protocol.errors import DafkaError
from dafka.zper.properties import KEYS, PropertiesError, defaults, read_properties

README = """\
    # common configuration
    io_threads = 2                  # number of io threads
    base_dir = "/data/zper"         # data store base directory
    segment_size = 536870912        # segment file size 512M
    flush_messages = 10000          # flush every N messages
    flush_interval = 1000           # flush every N milliseconds
    retain_hours = 168              # cleanup segements older than 1 week

    # writer configuration
    writer.bind = tcp://*:5555       # writer bind address
    writer.workers = 3               # number of worker threads
    writer.replica.1 = tcp://addr1:7555  # target replica 1's address
    writer.replica.2 = tcp://addr2:7555  # target replica 2's address

    # reader configuration
    reader.bind = tcp://*:5556        # reader bind address
    reader.workers = 3                # number of worker threads

    # ack configuration
    ack.bind = tcp://*:5557

    # relay configuration
    relay.bind = tcp://*:5558
    relay.poll = 1000                   # poll every N milliseconds

    # controller configuration (at 0.2)
    controller.bind = tcp://*:5559
    controller.quorum.1 = tcp://addr1:7559   # target quorum 1's address
    controller.quorum.2 = tcp://addr2:7559   # target quorum 2's address
"""


def value(text: str) -> object:
    """What ``base_dir`` is, which takes any text."""
    return read_properties(f"base_dir{text}").values["base_dir"]


def test_configuration_the_block_in_the_readme_is_taken_as_it_is():
    found = read_properties(README)
    assert found.warnings == ()
    assert set(found.without_effect) == {"io_threads", "writer.workers", "reader.workers"}
    given_ = {
        "base_dir": "/data/zper",
        "writer_bind": "tcp://*:5555",
        "reader_bind": "tcp://*:5556",
        "ack_bind": "tcp://*:5557",
        "relay_bind": "tcp://*:5558",
        "controller_bind": "tcp://*:5559",
        "writer_workers": 3,
        "reader_workers": 3,
        "writer_replica": ("tcp://addr1:7555", "tcp://addr2:7555"),
        "controller_quorum": ("tcp://addr1:7559", "tcp://addr2:7559"),
    }
    assert found.values == {**defaults(), **given_}


def test_an_empty_file_has_the_defaults_of_zper_and_listens_on_loopback():
    found = defaults()
    assert found["segment_size"] == 536_870_912
    assert (found["flush_messages"], found["flush_interval"]) == (10_000, 1000)
    assert (found["retain_hours"], found["max_message"]) == (168, 8_388_608)
    binds = [found[f"{role}_bind"] for role in ("writer", "reader", "ack", "relay", "controller")]
    assert binds == [f"tcp://127.0.0.1:{port}" for port in range(5555, 5560)]
    assert found["writer_replica"] == found["controller_quorum"] == ()


def test_every_default_is_a_value_that_its_key_takes():
    for name, key in KEYS.items():
        text = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
        assert key.read(text) == key.default, name


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" = a", "a"),
        ("=a", "a"),
        (" : a", "a"),
        (" a", "a"),
        ("\t=\ta\t", "a"),
        (" = a b ", "a b"),
        (" = a=b:c", "a=b:c"),
        (" = a#b", "a#b"),
        (" = a #b", "a"),
        (" = 'a #b' # c", "a #b"),
        (' = "a \\" b"', 'a " b'),
        (' = "a" b', '"a" b'),
        (" = it's", "it's"),
        (" = /data/\\\n      zper", "/data/zper"),
        (" = a\\\\\nsegment_size = 1", "a\\"),
        (" = a\\", "a"),
        (" = C:\\\\data", "C:\\data"),
        (" = \\u00e4\\ttab", "ä\ttab"),
        (" = a\r\nsegment_size = 1\r", "a"),
    ],
)
def test_lines_are_javas_with_quotes_and_comments_behind_a_value(text: str, read: str):
    assert value(text) == read


def test_comments_and_empty_lines_are_passed_over():
    assert read_properties("#x = 1\n! y\n\n   \n  # z\\\n") == read_properties("")


def test_an_unknown_key_is_a_warning_with_the_line_and_the_nearest_known_key():
    found = read_properties("\nflush_mesages = 7\nwriter.replica.one = tcp://a:1\n")
    assert found.warnings == (
        "line 2: 'flush_mesages' is unknown (the nearest known key is 'flush_messages')",
        "line 3: 'writer.replica.one' is unknown (the nearest known key is 'writer.replica.1')",
    )
    assert found.values == defaults()


def test_a_key_given_twice_is_a_warning_and_the_last_one_counts():
    found = read_properties("relay.poll = 1\nrelay.poll = 2")
    assert found.values["relay_poll"] == 2
    assert found.warnings == ("line 2: relay.poll is given in line 1 too; the last one counts",)


def test_the_key_of_the_java_servers_own_file_sets_the_retention():
    assert read_properties("retention_hours = 5").values["retain_hours"] == 5


def test_decoder_is_taken_and_said_to_have_no_effect():
    assert read_properties("decoder = false").without_effect == ("decoder",)


def test_replicas_are_in_the_order_of_their_numbers():
    lines = [f"writer.replica.{number} = tcp://host{number}:5555" for number in (10, 2, 1)]
    found = read_properties("\n".join([*lines, "writer.replica.sync = 2"])).values
    assert found["writer_replica"] == ("tcp://host1:5555", "tcp://host2:5555", "tcp://host10:5555")
    assert found["writer_replica_sync"] == 2


def test_a_role_with_an_empty_address_is_not_served():
    assert read_properties("ack.bind =").values["ack_bind"] is None


@pytest.mark.parametrize(
    "line",
    [
        "segment_size = 0",
        "segment_size = -5",
        "segment_size = 512M",
        "segment_size = 1.5",
        "segment_size =",
        "segment_size = 9223372036854775808",
        "segment_size = 99999999999999999999999999",
        "flush_messages = 0",
        "flush_messages = ten",
        "flush_messages = \u0661",
        "flush_interval = -1",
        "retain_hours = 0",
        "retain_hours = -2",
        "max_message = 0",
        "decoder = yes",
        "base_dir =",
        'base_dir = ""',
        "writer.bind = 5555",
        "writer.bind = tcp://*",
        "writer.bind = tcp://*:65536",
        "writer.bind = ipc:///tmp/zper",
        "writer.bind = inproc://zper",
        "writer.bind = tcp://a b:1",
        "writer.replica.1 = tcp://*:5555",
        "writer.replica.1 = tcp://host:*",
        "writer.replica.1 = tcp://host:0",
        "writer.replica.1 =",
        "writer.replica.sync = some",
        "= 7",
    ],
)
def test_a_wrong_value_is_an_error_with_the_line_the_key_and_the_value(line: str):
    with pytest.raises(PropertiesError) as raised:
        read_properties(f"# a comment\nrelay.poll = \\\n  5\n{line}\n")
    assert isinstance(raised.value, DafkaError) and isinstance(raised.value, ValueError)
    message = str(raised.value)
    assert message.startswith("line 4")
    key, _, wrong = line.partition(" =")
    assert key in message and wrong.strip(' "') in message


@pytest.mark.parametrize("address", ["tcp://*:0", "tcp://127.0.0.1:*", "tcp://[::1]:5555", "tcp://eth0:5555"])
def test_an_address_may_leave_the_port_open_or_be_ipv6(address: str):
    assert read_properties(f"writer.bind = {address}").values["writer_bind"] == address


@given(st.text(max_size=60))
def test_any_text_is_properties_or_an_error_of_ours(text: str):
    try:
        found = read_properties(text)
    except PropertiesError:
        return
    assert set(found.values) == set(defaults())
