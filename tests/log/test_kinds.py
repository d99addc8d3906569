"""Whose log a folder is: it is opened as what it was made as, and as nothing else."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dafka import Broker, Store
from dafka.log import Log, NotALogError
from dafka.log.kinds import BROKER, DATA_STORE, STORE, check_folder_kind
from dafka.overlay import Disk, Endpoint, StoreError

ADDRESS = "0" * 31 + "1"


@contextmanager
def data_store(path: Path):
    with Endpoint() as endpoint, endpoint.attach_master("st", Disk(path)) as store:
        yield store


KINDS = {
    "a broker": Broker,
    "a store of the mesh": Store,
    "a data store of the overlay": data_store,
}


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("opened", KINDS)
def test_a_folder_is_opened_as_what_it_was_made_as(tmp_path, made, opened):
    with KINDS[made](tmp_path):
        pass
    [kind] = [one for one in (BROKER, STORE, DATA_STORE) if one.words == opened]
    if made == opened:
        check_folder_kind(str(tmp_path), kind)
        with KINDS[made](tmp_path):
            return
    before = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    with pytest.raises(NotALogError, match=f"is the folder of {made}; give {opened} an empty"):
        check_folder_kind(str(tmp_path), kind)
    with (
        pytest.raises((NotALogError, StoreError), match=f"is the folder of {made}; give {opened} an empty"),
        ExitStack() as stack,
    ):
        stack.enter_context(KINDS[opened](tmp_path))
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == before
    with KINDS[made](tmp_path):  # and remains what it is
        pass


def test_a_store_whose_address_is_given_tells_what_its_folder_is(tmp_path):
    with Store(tmp_path, address=ADDRESS) as store:
        assert store.address == ADDRESS
    with pytest.raises(NotALogError, match="is the folder of a store of the mesh"):
        Broker(tmp_path).start()


def test_a_folder_that_tells_nothing_is_opened_as_anything(tmp_path):
    with Log(tmp_path):
        pass
    check_folder_kind(str(tmp_path), BROKER)
    with Broker(tmp_path):
        pass
