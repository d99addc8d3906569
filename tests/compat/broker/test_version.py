from __future__ import annotations

from compat.broker import Version


def test_the_version_is_the_one_whose_bindings_these_are():
    assert Version.string() == "2.8.0"
    assert (Version.MAJOR, Version.MINOR, Version.PATCH, Version.PROTOCOL) == (2, 8, 0, 2)


def test_only_its_own_protocol_is_compatible():
    assert Version.compatible(2)
    assert not Version.compatible(1)
