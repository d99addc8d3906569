"""Bounds of what a controller keeps and sends."""

from __future__ import annotations

INTERVAL = 1.0
"""Seconds between two questions to the same node."""
LOST_AFTER = 5.0
"""Seconds without a message until a node is listed as lost."""
FORGOTTEN_AFTER = 3600.0
"""Seconds until a lost node that the configuration does not name is forgotten."""

NODES = 256
"""Nodes that are listed. A further one that the configuration does not name takes the place of a lost one, or
is passed over."""
TOPICS = 20_000
"""Topics that a node tells others, and that it keeps of each of them."""
CHANGES = 2000
"""Topics in one message."""
LISTED = 3000
"""Topics in the response to a client."""
ANSWER = 1 << 20
"""Octets of the JSON of an answer."""
QUESTION = 1 << 12
"""Octets of the JSON of a question."""
TEXT = 300
"""Characters of a name, an address, the name of a figure."""
FIGURES = 32
"""Figures about a node."""
