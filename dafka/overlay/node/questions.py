"""Pings with which an endpoint asks its direct peers whether they have told everything."""

from __future__ import annotations

from collections.abc import Iterable


class Questions:
    """Hub side. Messages of a peer come in order: with its answer, all is there that it had told before."""

    def __init__(self) -> None:
        self._count = 0
        self._silent: dict[bytes, set[bytes]] = {}

    def ask(self, peers: Iterable[bytes]) -> tuple[bytes, set[bytes]]:
        """A payload for pings, and the peers that have not answered yet. To be ended with :meth:`end`."""
        self._count += 1
        question = self._count.to_bytes(8, "big")
        silent = self._silent[question] = set(peers)
        return question, silent

    def answered(self, peer: bytes, question: bytes) -> None:
        """A peer has answered; an answer to a question that has ended is ignored."""
        self._silent.get(question, set[bytes]()).discard(peer)

    def gone(self, peer: bytes) -> None:
        """A peer has nothing more to tell."""
        for silent in self._silent.values():
            silent.discard(peer)

    def end(self, question: bytes) -> None:
        """Nobody waits for the answers any more."""
        del self._silent[question]
