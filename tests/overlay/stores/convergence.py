"""Checks of simulated stores at the end: one content everywhere, and each write in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dafka.overlay.stores.master import Master
from dafka.overlay.stores.proxy import Proxy
from dafka.overlay.values import decode, encode

if TYPE_CHECKING:
    from .simulation import Network


def check(network: Network) -> None:
    master = network.master.store
    assert isinstance(master, Master)
    expected = {encode(key): value for key, value in master.content}
    for node in network.nodes:
        assert node.store.is_idle, f"{node} is not idle"
        if isinstance(node.store, Proxy):
            continue
        node.check_shadow()
        content = {encode(key): value for key, value in node.store.content}
        assert content.keys() == expected.keys(), f"{node} has other keys than the master"
        assert all(encode(content[key]) == encode(value) for key, value in expected.items()), node
    kept = {key: decode(row.value) for key, row in network.master.disk.items()}
    assert kept.keys() == expected.keys(), "the backend has other keys than the master"
    assert all(encode(kept[key]) == encode(value) for key, value in expected.items()), "the backend"
    if network.only_grows:
        check_counts(network, master)


def check_counts(network: Network, master: Master) -> None:
    counted = master.content.get("counter") if master.content.exists("counter") else 0
    survived = sum(node.written for node in network.nodes)
    assert counted >= survived, f"{survived} increments, {counted} are counted"
    assert counted <= network.attempted, f"{network.attempted} increments, {counted} are counted"
    for unique, winners in network.winners.items():
        assert winners <= 1, f"unique {unique} has {winners} winners"
        if network.asked[unique] == network.told[unique]:
            assert winners == 1, f"unique {unique} has no winner"
