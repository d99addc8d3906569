from __future__ import annotations

import warnings

import pytest

from compat.broker import BrokerOptions, Configuration
from compat.broker._broker_conf import ConfigurationError
from tests.compat.broker.conftest import connect
from tests.compat.broker.waiting import until


def test_options_and_their_defaults():
    assert vars(BrokerOptions()) == {
        "disable_ssl": False,
        "disable_forwarding": False,
        "ignore_broker_conf": False,
        "use_real_time": True,
    }


def test_a_configuration_has_no_certificate_unless_it_is_given_one():
    configuration = Configuration(BrokerOptions())
    for name in ("cafile", "capath", "certificate", "key", "passphrase"):
        assert getattr(configuration, f"openssl_{name}") == ""
    assert configuration.max_threads == 0


def test_a_configuration_is_made_of_options():
    with pytest.raises(TypeError, match="of BrokerOptions, not of dict"):
        Configuration({"disable_ssl": True})


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """Writes the working directory's broker.conf."""
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "broker.conf").write_text


def test_a_broker_conf_goes_before_the_options_of_the_program(conf):
    options = BrokerOptions()
    options.disable_forwarding = True
    conf("broker { disable-ssl = true, disable-forwarding = false }")
    configuration = Configuration(options)
    made = configuration.endpoint_options
    assert (made["tls"], made["versions"][1], made["overflow"]) == ("plain", 2, "wait")
    assert options.disable_ssl is False  # they are the program's


def test_a_broker_conf_says_what_happens_to_slow_peers_and_where_websocket_clients_connect(conf):
    conf('broker { peer-overflow-policy = "drop_oldest" web-socket { address = "127.0.0.2", port = 9997 } }')
    made = Configuration().endpoint_options
    assert (made["overflow"], made["websocket"]) == ("drop_oldest", "127.0.0.2:9997")


def test_a_broker_conf_is_ignored_if_that_is_wanted(conf):
    conf("broken {")
    options = BrokerOptions()
    options.ignore_broker_conf = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Configuration(options).endpoint_options["tls"] == "anonymous"


def test_options_without_effect_are_warned_of(conf):
    conf("broker { ttl = 4 } caf { scheduler { max-threads = 2 } }")
    with pytest.warns(UserWarning, match=r"no effect: broker\.ttl, caf\.scheduler\.max-threads") as caught:
        Configuration()
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("broker {", "ends within a group"),
        ("broker { disable-ssl = 1 }", "broker.disable-ssl is 1, not a bool"),
        ('broker.peer-overflow-policy = "sometimes"', "'sometimes', not one of disconnect"),
    ],
)
def test_an_invalid_broker_conf_is_an_error_by_name(conf, text, what):
    conf(text)
    with pytest.raises(ConfigurationError, match=what) as caught:
        Configuration()
    assert "broker.conf" in str(caught.value)


def test_an_endpoint_without_forwarding_passes_nothing_on(new_endpoint):
    one, other = new_endpoint(), new_endpoint()
    options = BrokerOptions()
    options.disable_ssl = options.disable_forwarding = True
    leaf = new_endpoint(Configuration(options))
    subscribers = [endpoint.make_subscriber("/t") for endpoint in (one, other)]
    mine = leaf.make_subscriber("/t")
    connect(leaf, one)
    connect(leaf, other)
    until(lambda: [str(topic) for topic in leaf.peer_subscriptions()] == ["/t"])
    one.publish("/t", "from one")
    assert mine.get() == ("/t", "from one")
    leaf.publish("/t", "from the leaf")  # behind what it could have passed on
    assert [subscriber.get() for subscriber in subscribers] == [("/t", "from the leaf")] * 2


def test_two_endpoints_without_forwarding_are_peers(new_endpoint):
    options = BrokerOptions()
    options.disable_ssl = options.disable_forwarding = True
    one, other = connect(new_endpoint(Configuration(options)), new_endpoint(Configuration(options)))
    subscriber = one.make_subscriber("/t")
    until(other.peer_subscriptions)
    other.publish("/t", 1)
    assert subscriber.get() == ("/t", 1)
