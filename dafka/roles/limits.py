"""The bounds and times of the roles, in one place.

Every table and buffer of a role ends at one of these. Anything that does not fit is dropped and, where it
matters, fetched later.
"""

from __future__ import annotations

from typing import NamedTuple

LAST_SEQUENCE = 2**63 - 1  # Kafka's offsets are signed 64-bit numbers; higher sequences are discarded


class Limits(NamedTuple):
    """Sizes in records and bytes (of contents), times in seconds."""

    # -- receiving: consumers and stores ---------------------------------------------------------
    partitions: int = 65_536
    """Partitions that a consumer or a store knows; records of further ones are ignored. Partitions that a
    broker leads come on top."""
    fetches: int = 1000
    """Fetches under way at once; a store queues about as many."""
    due_at_once: int = 200
    """Of these, how many are asked for again before others have their turn, where very many were lost."""
    first_window: int = 500
    """Records that the first fetch of a partition asks for; doubled by every complete answer."""
    smallest_window: int = 10
    """What the window is halved down to by fetches that time out."""
    largest_window: int = 10_000
    fetch_bytes: int = 4 * 1024 * 1024
    """A fetch asks for no more than about this, judging by the records before."""
    guessed_record_bytes: int = 256
    """Size of a record in a partition that none has arrived of yet."""
    fetch_timeout: float = 1.0
    """A fetch is lost when nothing has come for this long. C nodes repeat after a second too."""
    longest_pause: float = 8.0
    """Longest time between a fetch that nobody answered and the next one; begins at one timeout, doubles."""
    trimmed_grace: float = 0.25
    """How long producers may still send records that every store says are trimmed."""
    trimmed_patience: float = 4.0
    """How long records that a producer says are trimmed are asked for again while no store is known. As long
    as it takes to hear of every node."""
    store_patience: float = 12.0
    """The same while a store is connected that says nothing: it may be busy, or find them itself."""
    ahead_distance: int = 20_000
    """Records further than this from the next one are not kept: the fetch will take long anyway."""
    ahead_records: int = 20_000
    """Kept ahead of a gap, for one partition."""
    ahead_bytes: int = 8 * 1024 * 1024
    all_ahead_records: int = 200_000
    """Kept ahead of gaps, for all partitions of a role together."""
    all_ahead_bytes: int = 32 * 1024 * 1024
    ahead_attempts: int = 3
    """After this many unanswered fetches the records kept ahead of the gap make room for others."""
    heads_interval: float = 1.0
    """Time from the first GET-HEADS to the second; doubles from one to the next."""
    longest_heads_interval: float = 30.0
    heads_at_once: int = 1000
    """GET-HEADS in one tick."""

    # -- stores ----------------------------------------------------------------------------------
    uncommitted_records: int = 200_000
    """Handed to the log and not committed yet; what arrives beyond is dropped and fetched later."""
    uncommitted_bytes: int = 64 * 1024 * 1024
    write_pause: float = 1.0
    """Nothing is taken for this long after a write failed."""
    ack_interval: float = 0.5
    """Least time to the first repetition of an ACK; doubles from one to the next."""
    longest_ack_interval: float = 16.0

    # -- answering -------------------------------------------------------------------------------
    told_at_once: int = 256
    """Heads that a store tells at once; the endpoint asks for the others as it sends them."""
    answer_records: int = 100_000
    """Most records in the answer to one FETCH. C nodes ask for up to as many."""
    answer_bytes: int = 16 * 1024 * 1024
    """Most bytes in a producer's answer to one FETCH (at least one record); a store's log paces itself."""

    # -- producers -------------------------------------------------------------------------------
    longest_head_interval: float = 32.0
    """Longest time between the HEADs of a producer of which nothing is new; doubles from one to the next."""
    stores: int = 1000
    """Stores whose acknowledgements a producer remembers."""
    commit_patience: float = 20.0
    """How long a connected store that does not get on with a partition may still be committing records."""
    claim_interval: float = 0.25
    """Time from one CLAIM to the next while a producer asks where its partition ends."""
    longest_claim_interval: float = 16.0
    """The same when it knows; CLAIM then finds other producers of the partition."""
    claim_settle: float = 0.5
    """How long nothing new must have come before a producer believes that it knows where to go on."""
    plain_store_patience: float = 3.0
    """How long a store that does not know CLAIM has to name a partition that it has."""
    sample_records: int = 1000
    """Messages that a store sums up at a time, for a producer to see whose they are."""

    # -- peers -----------------------------------------------------------------------------------
    peers: int = 4096
    """Peers a node is connected to; beacons of further ones are ignored."""
    newcomers: int = 200
    """New peers a node connects to within ``newcomers_interval``; the others are connected to at a later
    beacon. To connect takes some 50 microseconds, and a flood of invented peers must not hold up the rest."""
    newcomers_interval: float = 0.1
    unreached: int = 256
    """Endpoints that peers' beacons name and nobody has answered at yet. A further one takes the place of the
    oldest, if that has had ``unreached_least``; otherwise it is connected to at a later beacon."""
    unreached_least: float = 3.0
    beacon_spacing: float = 0.1
    """Least time between beacons, however many new peers are heard of at once."""


DEFAULT_LIMITS = Limits()
