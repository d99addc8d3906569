from __future__ import annotations

import pytest

from compat.broker import BrokerOptions, Configuration


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
