"""The bounds of a remote broker's client, in one place. Times are seconds."""

from __future__ import annotations


def in_words(seconds: float | None) -> str:
    """A length of time as an error says it: "60 s", "1.5 s", "250 ms"."""
    if seconds is None:
        return "any time"
    return f"{seconds * 1000:.0f} ms" if round(seconds, 3) < 1 else f"{round(seconds, 1):g} s"


REQUEST_TIMEOUT = 30.0
"""From sending a request to its answer; requests that wait at the broker have their waiting time on top."""

CONNECT_TIMEOUT = 10.0
"""From the first packet until the server has said which requests it knows."""

RECONNECT_BACKOFF = 0.05
"""The pause after a connection has failed once; it doubles with each failure that follows."""

RECONNECT_BACKOFF_MAX = 1.0
"""The longest pause between two attempts to reach a broker."""

RECONNECT_JITTER = 0.2
"""By which part a pause is longer or shorter at random, so that clients do not come back all at once."""

TROUBLE_LOGGED = 60.0
"""Between two warnings in the log about the same trouble, such as a broker that cannot be reached."""

RETRY_BACKOFF = 0.1
"""The pause before a request is repeated because of an error that passes."""

RETRIES = 5
"""How often a request is repeated that a broker has refused for the moment."""

METADATA_AGE = 300.0
"""After so long a partition's leader is looked up again."""

IN_FLIGHT = 4
"""Produce requests of an idempotent producer under way at once, to the one leader of all their partitions.
Brokers recognize five batches of it in a partition, so they may be sent again if all answers are lost."""

RESPONSE_BYTES = 256 * 1024 * 1024
"""The largest answer that is taken; a longer one does not come from a Kafka broker."""

RECEIVE_BYTES = 256 * 1024
"""Room for an answer, at first; it grows with what really arrives."""

WAITING_CONNECTIONS = 1000
"""Connections to one broker for requests that wait there (fetch, join, sync) at the same time."""

IDLE_CONNECTIONS = 64
"""How many of those are kept when no request waits."""

FETCH_GRACE = 0.25
"""How long a fetch is waited for beyond its own time before the caller is told that there is nothing yet."""

FETCHES_KEPT_SECONDS = 10.0
"""How long the answer of a fetch that its caller did not wait for is kept for the next one."""

FETCHES_KEPT = 256
"""How many of these are kept."""

JOIN_MARGIN = 5.0
"""How much longer than its rebalance timeout a join or sync may take."""

HEARTBEAT_PAUSE = 0.5
"""Between two heartbeats of a member that waits for the next rebalance."""

UNUSED_SECONDS = 1.0
"""How long the connections to a broker stay open when the last client is gone."""

COORDINATORS = 10_000
"""Groups and transactional ids whose coordinators are remembered."""

EMPTY_PAUSE = 0.02
"""Before a broker is asked again that has answered a fetch with nothing before its time."""
