from __future__ import annotations

import warnings

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


def test_what_has_no_effect_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = BrokerOptions()
    options.disable_forwarding = True
    with pytest.warns(UserWarning, match="disable_forwarding"):
        Configuration(options)
    (tmp_path / "broker.conf").write_text("broker {}")
    with pytest.warns(UserWarning, match=r"broker\.conf"):
        Configuration()
    options = BrokerOptions()
    options.ignore_broker_conf = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Configuration(options)
