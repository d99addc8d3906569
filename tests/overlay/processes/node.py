"""A node as a process of its own: it repeats what it hears, one line each, until its input ends.

Arguments: its number, its address, and those of its peers. Each line of input is published.
"""

from __future__ import annotations

import sys
import threading

from dafka.overlay import Endpoint


def main() -> None:
    number, address, *peers = sys.argv[1:]
    with Endpoint(id=int(number).to_bytes(16, "big"), tls="plain") as endpoint:
        subscriber = endpoint.subscribe("/ring")
        endpoint.listen(address)
        for peer in peers:
            endpoint.peer_nosync(peer, retry=0.5)

        def repeat() -> None:
            for message in subscriber:
                print(message.value, flush=True)

        threading.Thread(target=repeat, daemon=True).start()
        print(endpoint.address, flush=True)
        for line in sys.stdin:
            endpoint.publish("/ring", line.strip())


if __name__ == "__main__":
    main()
