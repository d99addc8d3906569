"""The bounds of bridges, in one place."""

from __future__ import annotations

EVENT_OCTETS = 256 * 1024
"""Of the record batches that one event of a link carries; a single larger batch is an event of its own."""

LARGEST_BATCH = 8 * 1024 * 1024
"""A batch beyond this does not fit a message between peers; it is cut."""

WINDOW_OCTETS = 8 * 1024 * 1024
"""Sent to a site and not acknowledged by it. More is read from the broker when it has acknowledged some."""

EVENT_BESIDE = 1024
"""Octets that an event takes in memory besides its batches, about."""

HELD_OCTETS = 64 * 1024 * 1024
"""Of what has come from a site and is not written. One that keeps to its window stays far below."""

HELLO_SECONDS = 1.0
"""Between two greetings of a bridge to all others, and two requests for a link that is not there yet."""

SILENT_SECONDS = 10.0
"""A site that no greeting came from for this long may be taken over by another bridge of that name."""

LINK_SILENT_TICKS = 150
"""An end of a link that nothing is heard of for so many ticks is gone; the receiver asks for a new link."""

CHECKPOINT_SECONDS = 1.0
"""Between two checkpoints. Work since the last one is done again after a kill."""

REFRESH_SECONDS = 3600.0
"""Positions that have not changed are committed again that often, so that the broker does not expire them."""

TOPICS_SECONDS = 1.0
"""Between two looks for new topics and partitions."""

SETTINGS_SECONDS = 10.0
"""Between two looks at the settings of the topics that are shared."""

SETTINGS_AGAIN_SECONDS = 120.0
"""After which all of them are told again, for a message may have been lost."""

MOST_SETTINGS = 100
"""Of a topic, that other sites are told."""

SETTING_CHARACTERS = 10_000
"""Of the value of one."""

SETTINGS_TOPICS = 200
"""Topics whose settings are in one message."""

SETTINGS_RETRY_SECONDS = 2.0
"""Until settings are taken over again that the broker could not take."""

SET_CHARACTERS = 16 << 20
"""Of the topics of a site and their settings, that are remembered until the topics are made."""

SET_TOPIC_CHARACTERS = 200
"""Counted for each topic and each setting besides its own characters: what the objects take."""

FETCH_SECONDS = 0.5
"""How long a fetch waits for records, and how soon a partition that was just found is fetched."""

RECORDS_AT_ONCE = 16
"""Made of messages between two looks at the clock."""

PRODUCE_RECORDS = 2000
"""Messages of the overlay that are written to the broker at once."""

PRODUCE_OCTETS = 512 * 1024
"""The same in octets; the record that goes beyond is in it. Topics take a megabyte if nobody says else."""

LOOK_SECONDS = 0.2
"""Between two looks for a broker of this process that was stopped."""

LONGEST_RETRY = 5.0
"""Seconds between two attempts at a broker that refuses or does not answer."""

TOPIC_CHARACTERS = 249
"""Of the name of a Kafka topic."""

MOST_TOPICS = 1000
"""Names of topics that a template keeps ready."""

MOST_STREAMS = 10_000
"""Log streams of Zeek whose fields are remembered."""

MOST_SITES = 1000
"""That a bridge takes topics from, or shares its own with."""
