"""Every SHALL, MUST, SHOULD, RECOMMENDED and MAY of 46/DAFKA and of Dafka's README, and the test of each.

The sentences are those of the specification; where the README's Implementation section says the same in
other words, its words are in ``readme``. ``test`` is a file of this folder and a test in it, whose docstring
quotes the sentence (test_rules.py sees to that). ``note`` says where the documents disagree with each other
or with the nodes in the field, and what we do. The README of this folder has all of it as tables, which
``python -m tests.conformance.tables`` writes.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    section: str
    sentence: str
    test: str
    readme: str = ""
    note: str = ""


_DISCOVERY = "Node Discovery and Presence"
_MODEL = "Interconnection Model"
_TOPICS = "Topics, Partitions and Records"
_PRODUCER = "Producer Subscriptions"
_CONSUMER = "Consumer Subscriptions"
_STORE = "Store Subscriptions"

RULES = [
    Rule(
        _DISCOVERY,
        "Each dafka node SHALL publish its presence at regular intervals to the tower(s).",
        "test_discovery.py::test_a_node_publishes_its_presence_at_regular_intervals",
        note="Dafka's README leaves the section open (TBD).",
    ),
    Rule(
        _DISCOVERY,
        "When a tower receives a node beacon it SHALL publish an appropriate tower beacon consisting of 3 "
        "message frames.",
        "test_discovery.py::test_a_tower_answers_a_node_beacon_with_a_tower_beacon",
        note="Dafka's README leaves the section open (TBD).",
    ),
    Rule(
        _MODEL,
        "Each node SHALL create a ZeroMQ PUB and a ZeroMQ SUB socket to communicate with the towers "
        "hereinafter called beacon publisher and beacon subscriber socket respectivally.",
        "test_discovery.py::test_a_node_talks_to_towers_through_a_publisher_and_a_subscriber",
        readme="Each node SHALL create a ZeroMQ PUB and a ZeroMQ SUB socket to communicate with the towers.",
    ),
    Rule(
        _MODEL,
        "The beacon publisher socket SHALL be connected to at least one tower's SUB socket and the beacon "
        "subscriber socket SHALL be connected to at least one tower's PUB socket.",
        "test_discovery.py::test_a_node_is_connected_to_every_tower_it_was_given",
        readme="The PUB socket SHALL be connected to at least one tower's SUB socket and the SUB socket "
        "SHALL be connected to at least one tower's PUB socket.",
    ),
    Rule(
        _MODEL,
        "Each node SHALL create a ZeroMQ XPUB socket hereinafter called publisher socket and bind it to an "
        "address that can be reached by the other nodes.",
        "test_discovery.py::test_the_publisher_is_bound_to_an_address_that_others_reach",
        readme="Each node SHALL create a ZeroMQ XPUB socket and bind it to an address that can be reached "
        "by the other nodes.",
        note="Loopback unless told otherwise (bind=): wider is a visible choice.",
    ),
    Rule(
        _MODEL,
        "The node SHALL send this address at a regular interval to all connected towers.",
        "test_discovery.py::test_the_address_is_sent_to_all_towers_at_a_regular_interval",
        note="Also at once when a new peer is heard of, as C nodes do.",
    ),
    Rule(
        _MODEL,
        "Each node SHALL create a second ZeroMQ SUB socket hereinafter called subscriber socket.",
        "test_discovery.py::test_records_come_through_a_second_subscriber",
        readme="Each node SHALL create a second ZeroMQ SUB socket.",
        note="Nodes of one process with the same settings share their sockets: to others they are one peer.",
    ),
    Rule(
        _MODEL,
        "When a node discovers another node, it SHALL connect this socket, to the other nodes publisher "
        "socket.",
        "test_discovery.py::test_a_node_connects_to_the_publisher_of_a_node_it_discovers",
        readme="When a node discovers another node, it SHALL connect this socket, to the other nodes XPUB "
        "socket.",
    ),
    Rule(
        _MODEL,
        "A node MAY disconnect its subscriber socket if the peer has failed to respond within some time "
        "(see Heartbeating).",
        "test_discovery.py::test_a_node_disconnects_from_a_peer_that_is_silent_for_the_timeout",
        readme="A node MAY disconnect its SUB socket if the peer has failed to respond within some time "
        "(see Heartbeating).",
        note="Done, after beacon_timeout (4 s). There is no section Heartbeating: beacons count. While the "
        "tower is silent nobody is disconnected.",
    ),
    Rule(
        _TOPICS,
        "A Dafka cluster SHALL not place any restriction on the total number of topics other than physicals "
        "due to the amount of available memory or disk space.",
        "test_records.py::test_the_number_of_topics_is_not_restricted",
        note="A node's table has a bound that stands for its memory: 65 536 partitions, a setting "
        "(Limits.partitions). What is beyond is counted and not taken; the cluster as a whole has "
        "none.",
    ),
    Rule(
        _TOPICS,
        "Though it is RECOMMENDED to use only characters from the ASCII character set.",
        "test_records.py::test_topic_names_are_best_ascii_and_may_be_any_octets",
        note='"Of arbitrary length" contradicts the grammar, whose strings have one length octet: 1 to 255 '
        "octets.",
    ),
    Rule(
        _TOPICS,
        "Each Dafka topic SHALL consist of at least one partition.",
        "test_records.py::test_a_topic_consists_of_the_partitions_of_its_producers",
    ),
    Rule(
        _TOPICS,
        "In order to keep the protocol simple each producer MUST publish records to exactly one partition "
        "and further only one producer SHALL ever publish to the same partition.",
        "test_records.py::test_a_producer_publishes_to_one_partition_that_is_its_own",
        note="A producer that is given its address (address=) goes on behind the records that stores and "
        "consumers have under it; two that are running at once are found out.",
    ),
    Rule(
        _TOPICS,
        "In order to make this connection obvious the name of the partition SHALL be the producer's node "
        "UUID.",
        "test_records.py::test_the_partition_is_named_by_the_producers_uuid",
        note="As 32 upper-case hex digits, which is what nodes in the field send for the 16 octets.",
    ),
    Rule(
        _TOPICS,
        "The first record of each partition SHALL have the offset 0.",
        "test_records.py::test_the_first_record_has_the_offset_0",
    ),
    Rule(
        _TOPICS,
        "Each following record's offset SHALL be the previous record's offset incremented by 1.",
        "test_records.py::test_each_offset_is_the_one_before_plus_1",
    ),
    Rule(
        "Protocol Signature",
        "Every Dafka message sent SHALL start with the DAFKA protocol signature, %xAA %xA0.",
        "test_framing.py::test_every_message_has_the_signature",
        readme="Every Dafka message sent SHALL start with the ZRE protocol signature, %xAA %xA0.",
        note="The prose says %xAA %xA0 once, the grammar %xAA %xA5 everywhere: the grammar counts. C nodes "
        "send no signature at all. We send their framing by default and the specification's "
        "with framing='rfc46', and read both.",
    ),
    Rule(
        "Protocol Signature",
        "A node SHALL silently discard any message received that does not start with these two octets.",
        "test_framing.py::test_a_message_without_the_signature_is_silently_discarded",
        note="What is neither framing is discarded and counted by its cause.",
    ),
    Rule(
        "Versioning",
        "A version number octet %x01 shall follow the signature.",
        "test_framing.py::test_the_version_follows_the_signature",
        note="The prose says %x30 once, and the grammar puts the command's ID between the two: the grammar "
        "counts.",
    ),
    Rule(
        "Versioning",
        "A node SHALL discard messages that do not contain a valid version number.",
        "test_framing.py::test_a_message_of_another_version_is_discarded",
    ),
    Rule(
        "Dafka Commands",
        "Each command MUST contain as first frame the name of the ZeroMQ topic it is published to.",
        "test_framing.py::test_the_first_frame_is_the_zeromq_topic",
        note="In the field's framing the first frame begins with it and goes on with NUL, version and "
        "fields.",
    ),
    Rule(
        "The STORE-HELLO Command",
        "When a store receives, on its publisher socket, a STORE-HELLO subscription it SHALL send, on its "
        "publisher socket, a STORE-HELLO command to the subscriber.",
        "test_commands.py::test_a_store_greets_nodes_that_subscribe_to_its_hello",
        readme="When a store receives a store hello subscription on its XPUB socket it SHALL send a "
        "STORE-HELLO command to the subscriber.",
    ),
    Rule(
        "The CONSUMER-HELLO Command",
        "When a consumer receives, on its consumer socket, a STORE-HELLO command it SHOULD reply with a "
        "CONSUMER-HELLO command.",
        "test_commands.py::test_a_consumer_replies_to_a_store_hello",
        readme="When a consumer receives a STORE-HELLO command it SHOULD reply with a CONSUMER-HELLO "
        "command.",
        note="Also sent when a store subscribes to it. With offset reset latest it carries no topics, as in "
        "the field, until heads could tell the consumer something.",
    ),
    Rule(
        "The CONSUMER-HELLO Command",
        "If the consumer is not subscribed to any dafka topic it MUST NOT send a CONSUMER-HELLO command.",
        "test_commands.py::test_a_consumer_without_topics_does_not_reply",
    ),
    Rule(
        "The RECORD Command",
        "When a producer wishes to publish a record it SHALL use the RECORD command.",
        "test_commands.py::test_records_are_published_as_record_commands",
    ),
    Rule(
        "The RECORD Command",
        "A producer MUST NOT delete send records before receiving at least one ACK command.",
        "test_commands.py::test_a_producer_keeps_records_until_they_are_acknowledged",
        note="min_stores says how many stores (1); with 0, which asks for no ACK, records are kept as long "
        "as memory allows.",
    ),
    Rule(
        "The ACK Command",
        "When a store saved a record from a producer it SHALL ackowledge this by sending the ACK command to "
        "the same producer.",
        "test_commands.py::test_a_store_acknowledges_what_it_has_saved",
        note="Dafka's README has no such section. After the commit, never before; one ACK stands for "
        "everything up to it. Ours append the store's address, so that a producer can count distinct stores.",
    ),
    Rule(
        "The HEAD Command",
        "After a producer published its first record it SHALL send the HEAD command at regular a interval.",
        "test_commands.py::test_heads_are_sent_at_an_interval_after_the_first_record",
        note="ZeroMQ topic: the prose says the producer's address; grammar, subscriptions and field say the "
        "topic's name, and so do we. While nothing is new, and all is acknowledged, ours double the interval "
        "up to 32 s; a record, or somebody new who subscribes, ends that.",
    ),
    Rule(
        "The FETCH Command",
        "A consumer or store SHALL send the FETCH command if it detects it missed a record in a partition.",
        "test_commands.py::test_missed_records_are_fetched",
        note="ZeroMQ topic: the prose says the consumer's address; grammar, subscriptions and field say the "
        "partition, and so do we. Only what there is room for is asked for, and nothing twice at a "
        "time.",
    ),
    Rule(
        "The DIRECT-RECORD Command",
        "Upon receiving a FETCH command a producer or store SHALL check if it has stored the requested "
        "record(s).",
        "test_commands.py::test_a_fetch_of_what_is_not_there_is_not_answered_with_records",
        note="A store that had the records and let go of them says so with TRIMMED, an addition of ours "
        "that other nodes ignore; C stores are silent.",
    ),
    Rule(
        "The DIRECT-RECORD Command",
        "In case a requested record is available it SHALL send a DIRECT-RECORD command.",
        "test_commands.py::test_a_fetch_is_answered_with_direct_records",
        note="Exactly as many as asked for; C stores send one more. ZeroMQ topic: the prose says the "
        "address of the producer or store; grammar, subscriptions and field say the requester's, and "
        "so do we.",
    ),
    Rule(
        "The DIRECT-RECORD Command",
        "The records requested by the FETCH command SHALL be send according to their offset in ascending "
        "order.",
        "test_commands.py::test_fetched_records_come_in_ascending_order",
    ),
    Rule(
        "The GET-HEADS Command",
        "If a consumer subscribes to a dafka topic it SHALL sent a GET-HEADS command in order to get the "
        "heads for each partition of that topic.",
        "test_commands.py::test_subscribing_sends_get_heads",
        readme="If a consumer subscribes to a dafka topic it SHALL sent a GET-HEADS command.",
        note="ZeroMQ topic: Dafka's README says the consumer's address; the specification and the field say "
        "the topic's name, and so do we. Repeated at growing intervals, because it can be lost.",
    ),
    Rule(
        "The DIRECT-HEAD Command",
        "After receiving a GET-HEADS command a producer SHALL send a DIRECT-HEAD command if it publishes "
        "records to dafka topic requested by the GET-HEADS command.",
        "test_commands.py::test_a_producer_answers_get_heads",
        note="C producers do not; no subscription of a producer to GET-HEADS is listed either. Ours "
        "subscribe.",
    ),
    Rule(
        "The DIRECT-HEAD Command",
        "After receiving a GET-HEADS command a store SHALL send one DIRECT-HEAD command for each partition "
        "it has records stored on the requested dafka topic by the GET-HEADS command.",
        "test_commands.py::test_a_store_answers_get_heads_for_each_partition_of_the_topic",
        note="Of exactly that topic; C stores compare prefixes. ZeroMQ topic: the prose says the sender's "
        "address, the grammar the topic's name; subscriptions and field say the consumer's address, "
        "and so do we.",
    ),
    Rule(
        "ZeroMQ Subscriptions",
        "Because Dafka nodes are connected through PUB and SUB sockets each node MUST register "
        "subscriptions with the other nodes in order to receive messages.",
        "test_subscriptions.py::test_nodes_register_their_subscriptions_with_the_others",
    ),
    Rule(
        _PRODUCER,
        "A producer SHALL subscribe to ACK commands for its own partition by concatenating the ACK command "
        "ID and the partition name which equals the producer's address.",
        "test_subscriptions.py::test_a_producer_subscribes_to_acks_of_its_partition",
    ),
    Rule(
        _PRODUCER,
        "A producer SHALL subscribe to FETCH commands for its own partition by concatenating the FETCH "
        "command ID and the partition name which equals the producer's address.",
        "test_subscriptions.py::test_a_producer_subscribes_to_fetches_of_its_partition",
    ),
    Rule(
        _CONSUMER,
        "A consumer SHALL subscribe to DIRECT-RECORD commands addressed to it by concatenating the "
        "DIRECT-RECORD command ID and its consumer address.",
        "test_subscriptions.py::test_a_consumer_subscribes_to_its_direct_records",
    ),
    Rule(
        _CONSUMER,
        "A consumer SHALL subscribe to DIRECT-HEAD commands addressed to it by concatenating the "
        "DIRECT-HEAD command ID and its consumer address.",
        "test_subscriptions.py::test_a_consumer_subscribes_to_its_direct_heads",
    ),
    Rule(
        _CONSUMER,
        "A consumer SHALL subscribe to STORE-HELLO commands by concatenating the STORE-HELLO command ID and "
        "the consumer address.",
        "test_subscriptions.py::test_a_consumer_subscribes_to_store_hellos",
    ),
    Rule(
        _CONSUMER,
        "For each dafka topic a consumer is subscribed to it SHALL subscribe to RECORD commands by "
        "concatenating the RECORD command ID and topic name.",
        "test_subscriptions.py::test_a_consumer_subscribes_to_records_of_each_topic",
        note="ZeroMQ matches prefixes, so the names in messages are compared as well; C nodes do not.",
    ),
    Rule(
        _CONSUMER,
        "For each dafka topic a consumer is subscribed to it SHALL subscribe to HEAD commands by "
        "concatenating the HEAD command ID and topic name.",
        "test_subscriptions.py::test_a_consumer_subscribes_to_heads_of_each_topic",
    ),
    Rule(
        _CONSUMER,
        "For each partition of each dafka topic a consumer is subscribed to it MAY subscribe to ACK "
        "commands by concatenating the ACK command ID and the partition name which equals the producer's "
        "address.",
        "test_subscriptions.py::test_a_consumer_does_without_acks",
        note="Not done: a consumer has no use for them.",
    ),
    Rule(
        _STORE,
        "A store SHALL subscribe to all RECORD commands by subscribing the RECORD command ID.",
        "test_subscriptions.py::test_a_store_subscribes_to_all_records",
    ),
    Rule(
        _STORE,
        "A store SHALL subscribe to all HEAD commands by subscribing the HEAD command ID.",
        "test_subscriptions.py::test_a_store_subscribes_to_all_heads",
    ),
    Rule(
        _STORE,
        "A store SHALL subscribe to DIRECT-RECORD commands addressed to it by concatenating the "
        "DIRECT-RECORD command ID and its store address.",
        "test_subscriptions.py::test_a_store_subscribes_to_its_direct_records",
    ),
    Rule(
        _STORE,
        "A store SHALL subscribe to all FETCH commands by subscribing to the FETCH command ID.",
        "test_subscriptions.py::test_a_store_subscribes_to_all_fetches",
    ),
    Rule(
        _STORE,
        "A store SHALL subscribe to GET-HEADS commands by subscribing to the GET-HEADS command ID.",
        "test_subscriptions.py::test_a_store_subscribes_to_get_heads",
    ),
    Rule(
        _STORE,
        "A store SHALL subscribe to CONSUMER-HELLO commands by subscribing to the CONSUMER-HELLO command ID",
        "test_subscriptions.py::test_a_store_subscribes_to_consumer_hellos",
        note="By ID and its own address, as in the field: a consumer tells from that subscription which "
        "store to greet.",
    ),
]

# What neither document has a rule about.
BEYOND = [
    (
        "DIRECT-RECORD, FETCH",
        "C stores answer with one record more than asked for, and ask for up to 100 000 at once; ours send "
        "exactly `count` and ask for what there is room for. C consumers ask for no more than 100 000 and "
        "go on only when they hear a head, so our stores send a DIRECT-HEAD behind an answer if they have "
        "more.",
    ),
    (
        "C producers",
        "They answer a FETCH with contents of other records (those at the same places of the first 256 "
        "that are not acknowledged). So ours avoid gaps as far as ZeroMQ lets them: who has no room stops "
        "reading, and nothing is lost until the C producer's own queue is full (1 000 000 messages) or its "
        "connection breaks. What is lost then is asked of stores first; if none answers within two seconds "
        "the C producer's answer is taken, and may be wrong.",
    ),
    (
        "Stores",
        "C stores keep what they have from producers only. Ours ask each other for the heads of every topic "
        "(GET-HEADS with an empty topic, which C stores answer too) and fetch what they lack.",
    ),
    (
        "A producer that leaves",
        "Ours send a last HEAD: C consumers ask for heads once, when they subscribe, and would not hear of a "
        "partition whose producer is gone before its next HEAD.",
    ),
    (
        "Trimmed partitions",
        "Unknown to the documents; C stores leave a consumer that asks for a trimmed record waiting for "
        "ever. Ours answer with TRIMMED (ID `T`, with the address of whoever says so behind the last field), "
        "which other nodes ignore; the consumer goes on at the first record that exists and reports the gap "
        "(`Consumer.gaps`), when every store that it is connected to has said so. A store that says nothing "
        "is asked again for 12 seconds; a producer's word alone counts after 4 seconds without a store.",
    ),
]
