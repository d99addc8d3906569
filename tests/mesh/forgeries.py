"""The table of forged messages in dafka/mesh/README.md, which tests/mesh/test_speakers.py tries:
``python -m tests.mesh.forgeries`` writes it there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dafka.protocol.commands import (
    Ack,
    Claim,
    Command,
    ConsumerHello,
    DirectHead,
    End,
    Fetch,
    GetHeads,
    Head,
    StoreHello,
    Trimmed,
)
from dafka.protocol.runs import Run, topic_of

README = Path(__file__).parents[2] / "dafka" / "mesh" / "README.md"
TOPIC = b"t"


class Forgery(NamedTuple):
    """A message under an address.

    ``says(to, address, store)``: to the node ``to``, as if it came from ``address``, or the store ``store``.
    ``node``, ``store``: whether a node on the list, without or with the role of a store, can say it under
    another node's address.
    """

    name: str
    would: str
    says: Callable[[bytes, bytes, bytes], Run | Command]
    node: bool = False
    store: bool = True


FORGERIES = (
    Forgery(
        "RECORD", "take the place of the real record", lambda to, of, store: Run(None, of, TOPIC, 7, [b"x"])
    ),
    Forgery("DIRECT-RECORD", "the same for who fetches", lambda to, of, store: Run(to, of, TOPIC, 7, [b"x"])),
    Forgery("HEAD", "have nodes wait for records that nobody has", lambda to, of, store: Head(of, TOPIC, 7)),
    Forgery("DIRECT-HEAD", "the same for one node", lambda to, of, store: DirectHead(to, of, TOPIC, 7)),
    Forgery(
        "TRIMMED",
        "have a store or consumer skip records",
        lambda to, of, store: Trimmed(to, of, TOPIC, 7, of),
    ),
    Forgery(
        "ACK", "have a producer forget what no store has", lambda to, of, store: Ack(to, TOPIC, 7, store)
    ),
    Forgery("FETCH", "have another node sent records", lambda to, of, store: Fetch(to, of, TOPIC, 0, 7)),
    Forgery("GET-HEADS", "have another node sent heads", lambda to, of, store: GetHeads(TOPIC, of)),
    Forgery("CONSUMER-HELLO", "the same", lambda to, of, store: ConsumerHello(to, of, (TOPIC,))),
    Forgery(
        "STORE-HELLO", "have a consumer ask for records again", lambda to, of, store: StoreHello(to, store)
    ),
    Forgery("CLAIM", "stop a producer as a rival", lambda to, of, store: Claim(of, of, TOPIC, 0, True)),
    Forgery(
        "END of a store", "have a producer number wrongly", lambda to, of, store: End(to, of, TOPIC, 7, store)
    ),
    Forgery(
        "END of a consumer",
        "have a producer that comes back begin later than it need",
        lambda to, of, store: End(to, of, TOPIC, 7, b""),
        node=True,
    ),
)


def prefixes(address: bytes) -> list[bytes]:
    """What a node at this address subscribes to, to hear all of them."""
    every = (forgery.says(address, address, address) for forgery in FORGERIES)
    return sorted({topic_of(message) for message in every if not isinstance(message, Claim)} | {b"C"})


def table() -> str:
    rows = [
        "| forged message: what it would do | from outside | from a node on the list | from a store on it |",
        "|---|---|---|---|",
        "| a beacon under another node's address, which would have nodes connect elsewhere "
        "| stopped | stopped | stopped |",
        "| a beacon of one's own that names another's port "
        "| stopped | possible; who answers there must prove a key on the list | the same |",
    ]
    for one in FORGERIES:
        outcomes = ("possible" if may else "stopped" for may in (one.node, one.store))
        rows.append(f"| {one.name}: {one.would} | stopped | {' | '.join(outcomes)} |")
    rows.append("| a change, a repetition or the loss of a message on the way | stopped | | |")
    return "\n".join(rows)


_PLACE = re.compile(r"(<!-- made by tests/mesh/forgeries.py -->\n).*?(<!-- end -->\n)", re.DOTALL)


def with_table(text: str) -> str:
    """A document with the table as it is now."""
    return _PLACE.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text)


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
