"""The metrics of a node, as ``metrics()`` of a Producer, Consumer, Store and Tower returns them.

A plain mapping from names to numbers; those in :data:`LABELS` are mappings themselves. Names in
:data:`COUNTERS` only ever grow; all others are gauges. Those that begin with ``endpoint_`` belong to the
endpoint, which all nodes of a process with equal options share: its ``records_in`` came from other processes,
its ``records_out`` were published by any of its nodes, to any peer.

Everything is counted once for a run of records or read off when asked for; nothing is counted per record.
"""

from __future__ import annotations

NODE_METRICS = {
    "records_in": "Records delivered to the user (consumer) or committed (store, broker)",
    "bytes_in": "Contents of these in octets",
    "records_out": "Records published",
    "bytes_out": "Contents of these in octets",
    "records_served": "Records sent in answer to a FETCH",
    "bytes_served": "Contents of these in octets",
    "records_lost": "Records that no longer existed when the consumer came to them",
    "records_replaced": "Records that a newer one took the place of (latest_only); a batch counts as one",
    "fetches_sent": "FETCH commands sent",
    "fetches_timed_out": "FETCH commands that were not answered in time",
    "fetches_answered": "FETCH commands answered; a store counts each piece of an answer",
    "unacknowledged": "Records that not enough stores have acknowledged",
    "pending_records": "Records on their way from the user to the mesh",
    "pending_bytes": "Contents of these in octets",
    "retained_records": "Records kept by a producer",
    "retained_bytes": "Contents of these in octets",
    "partitions": "Partitions followed",
    "partitions_refused": "Times a partition found no place in the table",
    "partitions_unanswered": "Partitions with known records that no node sends",
    "lag": "Known records that are not yet delivered or committed",
    "mesh_lag": "The same, of a broker: records of native producers",
    "inbox_records": "Records that wait for the user",
    "inbox_bytes": "Contents of these in octets",
    "serve_requests": "FETCH commands waiting to be served",
    "beacons_in": "Beacons heard from nodes",
    "beacons_out": "Beacons told to nodes",
    "discarded": "What was discarded, by cause",
}
"""Of a node; each kind has those that apply to it."""

ENDPOINT_METRICS = {
    "endpoint_records_in": "Records received from other processes",
    "endpoint_bytes_in": "Contents of these in octets",
    "endpoint_records_out": "Records published by the nodes of this endpoint",
    "endpoint_bytes_out": "Contents of these in octets",
    "endpoint_commands_in": "Other commands received from other processes",
    "endpoint_commands_out": "Other commands sent by the nodes of this endpoint",
    "endpoint_fetches_in": "FETCH commands received from other processes",
    "endpoint_fetches_out": "FETCH commands sent by the nodes of this endpoint",
    "endpoint_peers": "Peers connected to",
    "endpoint_nodes": "Nodes on this endpoint",
    "endpoint_subscriptions": "Subscriptions of the nodes on this endpoint",
    "endpoint_heard_subscriptions": "Subscriptions of remote peers",
    "endpoint_local_items": "Runs and commands waiting between nodes of this endpoint",
    "endpoint_dropped": "Messages that peers which do not read have not been sent (transport zmtp)",
    "endpoint_queued_octets": "Octets waiting to be sent to peers (transport zmtp)",
}

HUB_METRICS = {
    "hub_longest_turn": "Longest time lately in which the hub looked at no socket, in microseconds",
    "hub_longest_turn_cpu": "Most processor time that it took in such a turn, in microseconds",
}
"""Of the hub, which all nodes of a process share; of the last one to two minutes."""

LISTENER_METRICS = {
    "listener_connections": "Connections of Kafka's clients",
    "listener_accepted": "Connections accepted",
    "listener_requests": "Requests received",
    "listener_bytes_in": "Octets received",
    "listener_bytes_out": "Octets sent",
    "listener_held_bytes": "Octets of requests and responses under way",
    "listener_fetch_sessions": "Fetch sessions of these clients",
    "listener_throttled": "Times that one of them was told to wait because of a quota",
}
"""Of a broker that listens for Kafka's clients."""

ZPER_METRICS = {
    "zper_connections": "Connections of ZeroMQ programs to ZPER's servers",
    "zper_accepted": "Connections accepted",
    "zper_messages_in": "Messages written and committed",
    "zper_bytes_in": "These in RAW form in octets",
    "zper_flushes": "Flushes of all partitions",
    "zper_unflushed_messages": "Messages taken that are not committed yet",
    "zper_unflushed_bytes": "What these take in memory, about",
    "zper_requests": "Requests of readers",
    "zper_streams": "Streams of the reader and of the relay",
    "zper_messages_streamed": "Messages sent in streams",
    "zper_bytes_streamed": "These in RAW form in octets",
    "zper_acks": "Messages told to subscribers of their topic",
    "zper_acks_dropped": "Acks not sent to subscribers that did not read",
    "zper_replica_lag": "Records that each replica has not answered for, by its address",
    "zper_queued_bytes": "Octets that wait for clients to read them",
}
"""Of a broker with ZPER's servers."""

BRIDGE_METRICS = {
    "bridge_records_in": "Records written to topics for messages of the overlay",
    "bridge_messages_out": "Records published in the overlay",
    "bridge_bytes_in": "Record batches of other sites that were written, in octets",
    "bridge_unacknowledged_bytes": "Record batches sent to other sites that they have not written yet",
    "bridge_links_in": "Sites that topics come from",
    "bridge_links_out": "Sites that topics go to",
}
"""Of a bridge between topics of Kafka and of the overlay."""

DESCRIPTIONS = {**NODE_METRICS, **ENDPOINT_METRICS, **HUB_METRICS, **LISTENER_METRICS, **ZPER_METRICS}
DESCRIPTIONS |= BRIDGE_METRICS

COUNTERS = frozenset(
    {
        *("records_in", "bytes_in", "records_out", "bytes_out", "records_served", "bytes_served"),
        *(
            "records_lost",
            "records_replaced",
            "fetches_sent",
            "fetches_timed_out",
            "fetches_answered",
            "partitions_refused",
        ),
        *("beacons_in", "beacons_out", "discarded"),
        *("endpoint_records_in", "endpoint_bytes_in", "endpoint_records_out", "endpoint_bytes_out"),
        *("endpoint_commands_in", "endpoint_commands_out", "endpoint_fetches_in", "endpoint_fetches_out"),
        "endpoint_dropped",
        *("listener_accepted", "listener_requests", "listener_bytes_in", "listener_bytes_out"),
        "listener_throttled",
        *("zper_accepted", "zper_messages_in", "zper_bytes_in", "zper_flushes"),
        *("zper_requests", "zper_messages_streamed", "zper_bytes_streamed", "zper_acks", "zper_acks_dropped"),
        *("bridge_records_in", "bridge_messages_out", "bridge_bytes_in"),
    }
)

LABELS = {"discarded": "cause", "zper_replica_lag": "replica"}
"""The label of each metric that is a mapping to numbers."""
