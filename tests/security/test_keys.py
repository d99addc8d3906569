"""Folders of keys: making them, their lists, and damaged folders."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
import zmq.auth
from zmq.utils import z85

from dafka.security import KeyFolder, KeyFolderError
from dafka.security.addresses import belongs
from dafka.security.keys import (
    LOOK_SECONDS,
    Allowed,
    Node,
    allow_node,
    allowed_in,
    new_keys,
    nodes_in,
    read_node,
    remove_node,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "keys"
    new_keys(made, "one")
    return made


def test_a_folder_has_the_servers_pair_the_nodes_and_the_list(folder):
    new_keys(folder, "two")
    assert list(nodes_in(folder)) == allowed_in(folder) == ["one", "two"]
    keys = KeyFolder(str(folder), "two").load()
    assert keys.server == KeyFolder(str(folder)).load_server()._replace(allows=keys.server.allows)
    assert keys.server.allows(keys.own.public)
    assert not keys.server.allows(keys.server.pair.public)


def test_the_files_are_those_of_zeromq(folder):
    public, secret = zmq.auth.load_certificate(folder / "one.key_secret")
    own = KeyFolder(str(folder)).load().own
    assert own == (z85.decode(public), z85.decode(secret))
    assert zmq.auth.load_certificates(folder / "allowed") == {public: True}


def test_secret_keys_and_folders_are_private(folder):
    for path in (folder, folder / "allowed", folder / "server.key_secret", folder / "one.key_secret"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_a_node_is_made_once_and_keeps_its_keys(folder):
    before = (folder / "one.key_secret").read_bytes()
    with pytest.raises(KeyFolderError, match="has keys of one already"):
        new_keys(folder, "one")
    assert (folder / "one.key_secret").read_bytes() == before


def test_the_servers_pair_stays_when_nodes_are_added(folder):
    before = KeyFolder(str(folder)).load_server().pair
    new_keys(folder, "two")
    assert KeyFolder(str(folder)).load_server().pair == before


@pytest.mark.parametrize("name", ["", "server", "../up", "a/b", ".hidden", "x" * 101, "line\n"])
def test_names_that_a_node_cannot_have(folder, name):
    with pytest.raises(KeyFolderError, match="the name of a node"):
        new_keys(folder, name)
    assert not remove_node(folder, name)


def test_a_folder_of_several_nodes_needs_the_name_of_one(folder):
    new_keys(folder, "two")
    with pytest.raises(KeyFolderError, match="several nodes: say which, of one, two"):
        KeyFolder(str(folder)).load()


def test_the_list_is_read_again_every_few_seconds(folder):
    now = 100.0
    allowed = Allowed(folder / "allowed", lambda: now)
    one = KeyFolder(str(folder)).load().own.public
    assert allowed(one)
    remove_node(folder, "one")
    new_keys(folder, "two")
    two = KeyFolder(str(folder), "two").load().own.public
    assert allowed(one) and not allowed(two)
    now += LOOK_SECONDS
    assert not allowed(one) and allowed(two)


def test_a_node_with_an_unreadable_key_is_not_let_in_and_the_others_are(folder, caplog):
    (folder / "allowed" / "bad.key").write_text("nothing\n")
    (folder / "allowed" / "worse.key").write_text('curve\n    public-key = "short"\n')
    allowed = Allowed(folder / "allowed")
    assert allowed.keys == {KeyFolder(str(folder)).load().own.public}
    assert "bad.key" in caplog.text and "worse.key" in caplog.text


def test_without_a_list_nobody_is_let_in(folder, caplog):
    one = KeyFolder(str(folder)).load().own.public
    shutil.rmtree(folder / "allowed")
    assert not Allowed(folder / "allowed")(one)
    assert "nobody is let in" in caplog.text


def break_pair(folder: Path) -> None:
    new_keys(folder, "two")
    lines = (folder / "one.key_secret").read_text().splitlines()
    other = (folder / "two.key_secret").read_text().splitlines()
    (folder / "one.key_secret").write_text("\n".join([*lines[:-1], other[-1], ""]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "server.key_secret").unlink(), r"server\.key_secret cannot be read"),
        (lambda folder: (folder / "one.key_secret").unlink(), "no secret key of a node"),
        (lambda folder: (folder / "one.key_secret").write_text("?"), r"one\.key_secret is not a key file"),
        (lambda folder: shutil.copy(folder / "one.key", folder / "one.key_secret"), "has no secret key"),
        (lambda folder: (folder / "one.key_secret").chmod(0o644), "chmod 600"),
        (break_pair, "not a pair"),
    ],
    ids=["no server", "no node", "not a key", "public only", "readable", "of two nodes"],
)
def test_errors_of_a_key_folder_name_the_file(folder, damage, message):
    damage(folder)
    with pytest.raises(KeyFolderError, match=message):
        KeyFolder(str(folder), "one" if message != "no secret key of a node" else "").load()


def test_the_list_says_what_a_node_may_be(folder):
    new_keys(folder, "archive", store=True)
    new_keys(folder, "old", plain=True)
    clock = [0.0]
    allowed = Allowed(folder / "allowed", lambda: clock[0])
    key = {name: KeyFolder(str(folder), name).load().own.public for name in ("one", "archive", "old")}
    assert allowed.node(key["one"]) == Node() and allowed.node(key["archive"]) == Node(store=True)
    assert allowed.node(key["old"]) == allowed.of_plain == Node(plain=True)
    assert allowed.node(bytes(32)) == Node()
    allow_node(folder, "one", Node(store=True, plain=True))
    remove_node(folder, "archive")
    clock[0] += LOOK_SECONDS
    assert allowed.node(key["one"]) == allowed.of_plain == Node(store=True, plain=True)
    assert allowed.node(key["archive"]) == Node()
    allow_node(folder, "one", Node())
    remove_node(folder, "old")
    clock[0] += LOOK_SECONDS
    assert allowed.of_plain == Node()


def test_roles_of_a_node_are_read_from_files_of_czmq_too(folder):
    listed = folder / "allowed" / "one.key"
    listed.write_bytes(
        listed.read_bytes().replace(b"metadata\n", b'metadata\n    name = "x"\n    store = yes\n')
    )
    assert read_node(listed) == Node(store=True)
    own = folder / "one.key"
    own.write_bytes(own.read_bytes().replace(b"metadata\n", b""))
    allow_node(folder, "one", Node(plain=True))
    assert read_node(listed) == Node(plain=True)


def test_a_node_that_may_be_no_store_is_told_what_to_do(folder):
    keys = KeyFolder(str(folder), "one")
    with pytest.raises(KeyFolderError, match=f"dafka keys allow {folder} one --store"):
        keys.check_store()
    allow_node(folder, "one", Node(store=True))
    keys.check_store()


def test_addresses_are_of_the_nodes_own_key(folder):
    keys = KeyFolder(str(folder), "one")
    for address in (keys.address(), keys.address("pose")):
        assert belongs(address.encode(), keys.load().own.public)
        keys.check_address(address)
    new_keys(folder, "two")
    with pytest.raises(KeyFolderError, match="is not of the node's own key"):
        keys.check_address(KeyFolder(str(folder), "two").address("pose"))
