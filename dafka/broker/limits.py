"""The bounds of a broker, in one place, by Kafka's names where Kafka has one."""

from __future__ import annotations

MESSAGE_MAX_BYTES = 1048588
"""message.max.bytes, the default: the largest record batch, header included."""

BATCH_MAX_BYTES = 64 * 1024 * 1024
"""The largest max.message.bytes that takes effect: a batch is one value on disk."""

OFFSET_METADATA_MAX_BYTES = 4096
"""offset.metadata.max.bytes: the longest text that goes with a committed offset."""

OFFSETS_RETENTION = 7 * 24 * 3600.0
"""offsets.retention.minutes, in seconds: how long the offsets of a group without members are kept."""

OFFSETS_CHECK_INTERVAL = 600.0
"""offsets.retention.check.interval.ms, in seconds."""

OFFSETS_KEPT = 1_000_000
"""Committed offsets of all groups and partitions together; beyond, commits for further ones are refused."""

ENDED_AT_ONCE = 500
"""Partitions and offsets of a transaction that its last round deletes; earlier rounds delete any others."""

COMMIT_OFFSETS = 300
"""Offsets that are committed, or deleted, in one round; more follow in further ones."""

GROUP_MAX_SIZE = 10_000
"""group.max.size, and group.consumer.max.size and its like: members of one group of any type; of the classic
one, those that have only been given an id included."""

MEMBER_TEXT = 1024
"""Characters of the id, the instance id and the rack of a member of a consumer group."""

MEMBER_TOPICS = 10_000
"""Topics that a member of a consumer, share or streams group subscribes to; beyond, it is refused."""

GROUP_SUBSCRIPTIONS = 1_000_000
"""Topics that all members of such a group subscribe to, counted for each member."""

TOPOLOGY_NAMES = 5_000
"""Subtopologies, topics, settings of topics and the like of a topology of Kafka Streams."""

TOPOLOGY_LETTERS = 1024 * 1024
"""Characters of all names in a topology."""

GROUP_TASKS = 20_000
"""Active tasks of a streams group, and standby tasks as well; with more, no task is assigned."""

MIGRATED_AT_ONCE = 300
"""Members of a group that becomes a classic one in the turn in which the last newer member goes."""

MIGRATED_OCTETS = 256 * 1024
"""Octets of the subscription and the assignment of a classic member in a group of the newer protocol."""

KEPT_MEMBER_OCTETS = 6 * 1024 * 1024
"""Octets of what is kept of a member over a restart, compressed if it is much: enough for 100 000 topics. One
of whom there is more joins again."""

KEPT_MEMBER_TEXT = 64 * 1024 * 1024
"""The same before it is compressed."""

KEPT_MEMBERS_AT_ONCE = 100
"""Members of a group that are written in the turn in which they change; more are written in pieces."""

KEPT_ITEMS_AT_ONCE = 1000
"""Partitions, names of topics and the like in the rows of these; of more, rows are made beside the hub."""

KEPT_MEMBERS_IN_A_ROUND = 1000
"""Rows of members in one commit."""

LEAVING_AT_ONCE = 1_000
"""Members that a LeaveGroup names and that are removed before others have their turn."""

MOVED_AT_ONCE = 1_000
"""Topics that are looked at in a heartbeat by which a member of a consumer group gets or gives up partitions;
for more of them that is computed beside the hub."""

TOPICS_AT_ONCE = 1_000
"""Topics that members of a group subscribe to, get or give up at a time: those of more are looked up, taken
and released in pieces."""

ASSIGNED_AT_ONCE = 5_000
"""Members, their subscriptions and partitions of a group together whose assignment is computed at once; that
of a larger group is computed beside the hub."""

TASKS_ASSIGNED_AT_ONCE = 500
"""The same of a group of Kafka Streams: members and tasks, standbys counted. Its assignor looks at more, and
takes some 5 ms for so many."""

MEMBERS_ASSIGNED_FOR_EACH = 500
"""Members of a group of the newer protocols for each of whose changes a target is computed. A larger group
has one for all that changes in a while (PAUSE_OF_A_MEMBER): else N members that join would take N² steps."""

PAUSE_OF_A_MEMBER = 100e-6
"""Seconds for each member, which pass between two targets of a larger group at least: its assignments take
a tenth of the processor's time or so. They are 1 s for 10 000 members, which is Kafka's default for groups of
any size."""

BARE_GROUPS = 10_000
"""Groups that are known only because their offsets were deleted lately."""

GROUPS_KEPT = 100_000
"""Groups that have members, or had some lately; beyond, no further group begins."""

EMPTY_SECONDS = 600.0
"""Seconds that a group without members is remembered; its committed offsets stay."""

SESSION_TIMEOUT_MIN = 0.01
"""group.min.session.timeout.ms, in seconds. Kafka's is 6 s; tests of crashes need less."""

SESSION_TIMEOUT_MAX = 1800.0
"""group.max.session.timeout.ms, in seconds."""

INITIAL_DELAY = 0.002
"""group.initial.rebalance.delay.ms, in seconds: how long a first generation waits for a further member,
after each one that came."""

INITIAL_DELAY_MAX = 0.05
"""Seconds that it waits altogether."""

INITIAL_DELAY_UNREADY = 0.3
"""Seconds that it waits at least if the member that came first has yet to learn of its topics' partitions.
kafka-python asks for them 100 ms (its ``retry_backoff_ms``) after it has connected, later if its machine is
busy."""

REBALANCE_AGAIN = 1.0
"""Seconds that a group waits at least for static members that are away, before it looks at them again."""

ACCOUNTS_KEPT = 100_000
"""Credentials of users; beyond, no further ones can be set."""

ACLS_KEPT = 200_000
"""Entries of access control lists; beyond, no further ones can be created."""

ACL_OCTETS = 1024
"""The longest name, principal or host of such an entry."""

ACL_FILTERS = 1000
"""Filters of a request to delete such entries, besides those that name a single one."""

ACLS_DELETED = 10_000
"""Entries that a request deletes, as in Kafka, whose controller writes no more at once."""

ACLS_LISTED = 200_000
"""Entries that the answer to such a request lists; one that several filters take is in each one's answer."""

ACL_ROUND = 250
"""Entries of access control lists or accounts that one commit changes."""

QUOTA_ROUND = 100
"""The same of quotas, which take longer."""

ACL_DECISIONS = 20_000
"""Decisions that are kept until the lists change; none about a name that may be longer than ACL_OCTETS."""

DENIALS = 100
"""Different refusals that are written to the audit log in a minute, each of them once."""

QUOTAS_KEPT = 10_000
"""Users, client ids and pairs of them that quotas are set for; beyond, no further ones can be set."""

THROTTLES_KEPT = 20_000
"""Clients whose use of a quota is remembered; beyond, one that owes nothing gives way, or new ones share."""

PARTITIONS_PER_TOPIC = 100_000
"""Numbered partitions of one topic."""

PARTITIONS_KEPT = 1_000_000
"""Numbered partitions of all topics together; beyond, no topic gets further ones."""

OTHERS_KEPT = 10_000
"""Groups and subscriptions to metrics of clients together that have settings of their own."""

SETTINGS_CHANGED = 1000
"""Settings of one resource that a request changes."""

UNKNOWN_SETTINGS = 1000
UNKNOWN_SETTINGS_OCTETS = 1 << 20
"""Settings of the broker, or of all brokers, that nobody knows, and the octets of their names and values."""

DELETED_RETENTION = 7 * 24 * 3600.0
"""Seconds that leaders of a deleted topic are remembered after a node of the mesh has mentioned them."""

DELETED_KEPT = 100_000
"""Leaders of deleted topics that are remembered; beyond, the longest unmentioned ones are forgotten."""

PENDING_BYTES = 64 * 1024 * 1024
"""Batches of all leaders together that wait for their commit; produce waits when there are more."""

WIDE_PRODUCE = 500
"""Batches of one call that are taken at once. Of more, others' are taken and written in between."""

RECORDS_AT_ONCE = 50_000
"""Records in batches of one call that are taken at once."""

YIELD_BYTES = 1024 * 1024
"""Bytes a fetch reads before other green threads have their turn."""

HEAD_INTERVAL = 1.0
"""Seconds between two HEADs of one leader (46/DAFKA: "at a regular interval")."""

KNOWN_APPENDS = 5
"""Appends of a producer that a partition knows again when they come twice."""

PRODUCER_ID_EXPIRATION = 24 * 3600.0
"""producer.id.expiration.ms, in seconds: how long a partition knows a producer that does not write."""

PRODUCER_RETRIES = 3600.0
"""Seconds for which a partition knows a silent producer however many there are. Clients send a batch again
within their delivery.timeout.ms or message.timeout.ms, two to five minutes unless they are told otherwise."""

PRODUCERS_KEPT = 1_000_000
"""Producers that all partitions together know, about 0.25 kB each; beyond, those that have been silent for
PRODUCER_RETRIES are forgotten, the longest silent ones first."""

PRODUCERS_MAX = 2_000_000
"""Beyond as many no partition takes a batch of an idempotent producer that it does not know."""

FIRST_SEQUENCES_KEPT = 10_000
"""Producers whose refused first batch of a transaction is remembered, in all partitions together; beyond, the
longest remembered ones are forgotten."""

PRODUCER_IDS = 1000
"""Producer ids that one commit sets aside."""

ABORTED_BLOCK = 128
"""Aborted transactions of a partition in one stored value."""

TRANSACTION_TIMEOUT_MAX = 900.0
"""transaction.max.timeout.ms, in seconds."""

TRANSACTION_GROUPS = 1000
"""Groups whose offsets one transaction commits."""

TRANSACTIONAL_ID_EXPIRATION = 7 * 24 * 3600.0
"""transactional.id.expiration.ms, in seconds: how long an id without transactions is remembered."""

EXPIRATION_INTERVAL = 3600.0
"""Seconds between two searches for producers, transactional ids and rows of topics that are gone."""

CROWD_INTERVAL = 60.0
"""Seconds between two looks whether there is more of them than is kept."""

TRANSACTIONAL_IDS_KEPT = 100_000
"""Transactional ids; beyond, those are forgotten whose last transaction ended longest ago."""

CHECKPOINT_OCTETS = 64 * 1024
"""Octets in RAW form between two checkpoints of a partition's positions; one record batch may have more."""

CHECKPOINT_BYTES = 512 * 1024
"""The same in bytes of record batches: aborted ones have no octets, and are read all the same."""

CHECKPOINT_BLOCK = 256
"""Checkpoints in one stored value."""

CHECKPOINT_INTERVAL = 30.0
"""Seconds until checkpoints are stored that do not fill a value. After a crash they are measured again."""

POSITIONS_READ = 256 * 1024
"""Bytes of batches, or octets, that reading and measuring positions takes at a time, about."""

POSITIONS_CACHE = 8 * 1024 * 1024
"""Octets of batches in RAW form that are kept for the next reader."""
