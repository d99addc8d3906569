"""The settings of a node as users give them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dafka import Consumer, Producer, Store
from dafka.mesh.observer import Observer


@pytest.mark.parametrize("name", ["Producer", "Consumer", "Store", "Observer"])
def test_an_unknown_keyword_is_an_error_of_the_class_that_was_called(tmp_path: Path, name: str) -> None:
    calls = {
        "Producer": lambda **wrong: Producer("orders", **wrong),
        "Consumer": lambda **wrong: Consumer(["orders"], **wrong),
        "Store": lambda **wrong: Store(tmp_path / "db", **wrong),
        "Observer": lambda **wrong: Observer([b"H"], **wrong),
    }
    expected = (
        f"{name}() got an unexpected keyword argument 'beacon_intervall'. Did you mean 'beacon_interval'?"
    )
    with pytest.raises(TypeError, match=re.escape(expected)):
        calls[name](beacon_intervall=1.0)
    with pytest.raises(TypeError, match=f"{name}.*'colour'; those of the mesh are bind, framing"):
        calls[name](colour="blue")
    assert not (tmp_path / "db").exists()
