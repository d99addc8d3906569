"""The bounds of the mesh: every queue, cache and table of :mod:`dafka.mesh` ends at one of these.

Messages that do not fit are dropped and counted, and repaired later by HEAD and FETCH; or the caller waits.
The bounds of the roles are in :mod:`dafka.roles.limits`. Modules read these as ``limits.NAME`` when they need
them, so that a test can lower one.
"""

from __future__ import annotations

# -- sockets ------------------------------------------------------------------------------------

HIGH_WATER_MARK = 100_000
"""Messages that a socket queues for one peer before it drops, unless the user says otherwise. They may be of
any size: where records are large, a lower mark bounds their memory until a peer that hangs is given up."""
TOWER_HIGH_WATER_MARK = 10_000
"""The same for a tower's beacons."""
KEEPALIVE_SECONDS = 4
"""Silence on a connection after which the peer's system is asked whether it still has it ..."""
KEEPALIVE_INTERVAL = 1
"""... once in as many seconds ..."""
KEEPALIVE_PROBES = 4
"""... and as many times, before the connection is made anew."""
LINGER_MS = 1000
"""How long closed sockets go on sending in the background."""
SMALL_FRAME_OCTETS = 4096
"""Longest frame of a beacon; ZeroMQ drops the connection that exceeds it."""
SUBSCRIPTION_OCTETS = 512
"""Longest frame that a publisher takes: a subscription has up to 266, a handshake with a name up to 330.
ZeroMQ keeps every subscription, at about 50 octets for each of its own: also with XPUB_MANUAL, where it keeps
those that nobody has accepted for the end of the connection."""
KEYS_SECONDS = 5.0
"""The interval at which a tower looks whether a node was taken off the list of those that may come in."""
BIND_SECONDS = 0.05
"""Between a tower's attempts to bind its address anew."""
RECONNECT_MS = 1000
"""Longest pause between attempts to reach a peer that does not answer; it begins at 100 ms and doubles."""
EXPECT_SECONDS = 0.25
"""Between two looks at whether towers are still heard, while a peer that was lost is awaited."""
RECORD_OCTETS = 256 * 1024 * 1024
"""Longest content of a record. ZeroMQ allocates what a peer announces, so it must be told a limit."""

# -- our own ZMTP -------------------------------------------------------------------------------

READ_OCTETS = 1024 * 1024
"""Read from a peer at once."""
MESSAGE_OCTETS = RECORD_OCTETS + 4096
"""Longest message: a record and its head."""
TOLD_OCTETS = 16 * 1024 * 1024
"""Changes of subscriptions that a peer has not read before it is connected to anew and told all of them."""
QUEUED_OCTETS = 256 * 1024 * 1024
"""Waiting to be sent to one peer. A message without room is dropped and counted; the peer fetches it ..."""
ALL_QUEUED_OCTETS = 5 * QUEUED_OCTETS
"""... and to all peers. Where much waits, a single peer has a quarter of what is left."""
PEER_PREFIXES = 250_000
"""Subscriptions of one peer (cause ``subscriptions`` of a connection that is closed): three for each producer
of its process, four or five for each consumer and store ..."""
PEER_PREFIXES_OCTETS = 64 * 1024 * 1024
"""... their octets, at 200 for each besides its own ..."""
ALL_PREFIXES_OCTETS = 256 * 1024 * 1024
"""... and those of all peers."""

# -- endpoint -----------------------------------------------------------------------------------

ROUND_MESSAGES = 1000
"""Messages, subscriptions or local items read before other green threads have their turn."""
BEACONS_AT_ONCE = 100
"""The same of beacons. One that tells of a new peer takes as long as ten others."""
LANE_MESSAGES = 1000
"""Published messages that ZeroMQ queues for one consumer or store before the sender has to queue them."""
LANE_BYTES = 4 * 1024 * 1024
"""Contents read at once for one consumer or store, except that one message always is; so many may wait for
room."""
LANE_BEHIND_SECONDS = 0.25
"""A lane that has found nothing to read for longer than this, while something was there, is behind."""
LANE_READ_UP_SECONDS = 1.0
"""A lane that has not been behind for so long has read all that had come before."""
LANE_LEAVE_SECONDS = 0.5
"""How long nothing may come before a peer that has left is disconnected from."""
LENT_CONNECTIONS = 16
"""Connections at most from which the thread of one consumer's user receives itself."""
LENT_WORTH_RECORDS = 8
"""If fewer messages were received over a connection that was lent, twice as many records as before have to
come alone before the next one is lent ..."""
LENT_AFTER_RECORDS = 64
"""... and so many at most."""
ANSWERS_HEARD_SECONDS = 10.0
"""How long a C producer's answers are heard when nobody else has answered."""
HEARD_PREFIXES = 250_000
"""Subscriptions of remote peers that are told apart. Beyond, everything counts as subscribed to."""
PREFIX_OCTETS = 256
"""Longest subscription that can match anything: an ID octet and a topic."""
LOCAL_ITEMS = 200_000
"""Commands and runs between nodes of one process; above the heads that one store may answer with."""
LOCAL_BYTES = 64 * 1024 * 1024
"""Contents of the runs among them."""
DELIVERED_AT_ONCE = 32
"""Runs of records and commands of one peer that are handled before a look at the clock. Those of as many
partitions take some 20 microseconds each."""
TOLD_AT_ONCE = 100
"""Subscriptions of others that a node is told of when it joins; of further ones little by little."""
TICKED_AT_ONCE = 100
"""Nodes ticked before other green threads have their turn."""
LISTENED_TOPICS = 1000
"""Topics that somebody has subscribed to between two rounds of ticks; with more it counts as all topics."""
RESOLVING = 16
"""Host names of peers being looked up at once."""
LOOKUP_PAUSE = 5.0
"""Seconds until a host name that was not found is looked up again."""
CAUSES = 256
"""Different causes that discarded messages are counted under."""

# -- producer -----------------------------------------------------------------------------------

RUN_RECORDS = 1000
"""Records published before the hub turns to something else."""
RUN_BYTES = 4 * 1024 * 1024
"""Their contents, except that one record always goes."""
LONE_OCTETS = 4 * 1024
"""Contents of a record that comes alone and that the calling thread sends itself."""
PENDING_RECORDS = 10_000
"""Records on their way into the hub; then ``send`` waits."""
WAY_RECORDS = 512
"""Records after which a thread that sends much lets the hub go on."""
PENDING_BYTES = 16 * 1024 * 1024
RETAINED_BYTES = 64 * 1024 * 1024
"""Contents kept until stores have them; then ``send`` waits. With ``min_stores=0`` the oldest go."""
RETAINED_RECORDS = 1_000_000
"""The same in messages, for those that have next to no content."""
BATCH_RECORDS = 2000
"""Records of a batch of a producer that sends record batches."""
BATCH_BYTES = 256 * 1024
"""The same in octets, except that one record always goes."""

# -- consumer -----------------------------------------------------------------------------------

ROOM_RECORDS = 100_000
"""Messages that wait for the user; the room that is left is the credit for fetching."""
ROOM_BYTES = 64 * 1024 * 1024
GAPS_KEPT = 1000
"""The newest gaps that ``Consumer.gaps`` remembers."""

# -- consumer and store -------------------------------------------------------------------------

UNANSWERED_SECONDS = 10.0
"""How long nobody may send a partition's records before the log says so."""

# -- store --------------------------------------------------------------------------------------

SERVE_RECORDS = 1000
"""Records sent before another request or green thread has its turn."""
SERVE_BYTES = 1024 * 1024
HEADS_AT_ONCE = 256
"""Heads that a store tells in one turn of the hub."""

SERVE_REQUESTS = 1000
"""Fetches that wait to be served; more are dropped, and their senders ask again."""

# -- observer -----------------------------------------------------------------------------------

OBSERVED_ITEMS = 100_000
"""Commands and runs that wait to be taken; the oldest are dropped."""
OBSERVED_BYTES = 64 * 1024 * 1024
"""Contents of the runs among them."""
