"""Packages whose names are imported on first use."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import dafka
import dafka.overlay
import dafka.testing
import dafka.zper
from dafka.lazy_names import lazy_names


def test_a_name_is_imported_on_first_use_and_kept(tmp_path, monkeypatch):
    (tmp_path / "lazy_home.py").write_text("Thing = object()\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = ModuleType("some")
    package.__all__ = ["Thing"]
    package.__getattr__, package.__dir__ = lazy_names(package.__dict__, {"Thing": "lazy_home"})
    assert "lazy_home" not in sys.modules and "Thing" in dir(package)
    assert package.Thing is sys.modules["lazy_home"].Thing is package.__dict__["Thing"]


def test_an_unknown_name_is_an_attribute_error_as_with_any_module():
    package = ModuleType("some")
    package.__getattr__, _ = lazy_names(package.__dict__, {})
    with pytest.raises(AttributeError, match="module 'some' has no attribute 'thing'"):
        package.thing  # noqa: B018


@pytest.mark.parametrize(
    "package", [dafka, dafka.overlay, dafka.testing, dafka.zper], ids=lambda p: p.__name__
)
def test_every_public_name_is_there(package):
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
