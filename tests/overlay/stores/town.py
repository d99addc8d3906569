"""A town of a master and its clones."""

from __future__ import annotations

from collections import deque
from itertools import count

from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Master
from dafka.overlay.stores.outputs import Publish, clone_topic
from dafka.overlay.wire.commands import (
    Put,
    decode_command,
    encode_command,
)
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId


class Town:
    """A master and clones that hear each other at once, but for those in ``deaf``."""

    def __init__(self, *clones: str) -> None:
        self.numbers = count(1)
        self.now = 0.0
        self.deaf: set[str] = set()
        self.said: list[tuple[str, object]] = []
        self.master = Master(self.entity("m"), Content("st"))
        self.clones = {name: self.clone(name) for name in clones}
        self._left: deque = deque()

    def entity(self, name: str) -> EntityId:
        return EntityId(name.encode().ljust(16, b"-"), next(self.numbers))

    def clone(self, name: str) -> Clone:
        return Clone(self.entity(name), Content("st"), lambda: self.entity(name))

    def carry(self, name: str, outputs) -> None:
        self._left += [(name, output) for output in outputs]
        while self._left:
            sender, output = self._left.popleft()
            if not isinstance(output, Publish):
                self.said.append((sender, output))
                continue
            command = decode_command(encode_command(output.command))
            receivers = list(self.clones) if output.topic == clone_topic("st") else ["m"]
            for one in receivers:
                endpoint = one.encode().ljust(16, b"-")
                if one == sender or self.deaf & {one, sender} or output.receiver not in (None, endpoint):
                    continue
                known = (
                    self.master.receive(self.now, command)
                    if one == "m"
                    else self.clones[one].receive(command)
                )
                self._left += [(one, following) for following in known]

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.now += 0.1
            self.carry("m", self.master.tick(self.now))
            for name, clone in self.clones.items():
                self.carry(name, clone.tick())

    def write(self, name: str, action) -> None:
        if name == "m":
            self.carry("m", self.master.write(self.now, action))
        else:
            self.carry(name, self.clones[name].write(action))

    def get(self, name: str, key):
        store = self.master if name == "m" else self.clones[name]
        return store.content.get(key) if store.content.exists(key) else None


def put(key, value, expiry=None) -> Put:
    return Put(key, value, expiry, NO_ENTITY)
