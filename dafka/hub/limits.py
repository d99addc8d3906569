"""The bounds of the hub: how long one green thread may keep it from the others.

Modules read these as ``limits.NAME`` when they need them, so that a test can lower one.
"""

from __future__ import annotations

POSTED_AT_ONCE = 1000
"""Posted calls carried out before sockets and timers have their turn."""
POSTED_SECONDS = 0.01
"""The same in time: what is posted by then waits for the loop's next turn."""
WAYS_GIVEN = 4
"""How often in a row a thread that computes waits for the hub, which would wait for it otherwise."""
WAY_SECONDS = 1e-6
"""How long, each time; the system makes some 60 microseconds of it."""
SHORTEST_RESTART = 0.1
"""Seconds until a green thread that failed on something unexpected goes on; doubled by each failure."""
LONGEST_RESTART = 5.0

PACE_SECONDS = 0.003
"""Work of one green thread before others have their turn."""
PACE_ITEMS = 64
"""Items of such work between two looks at the clock."""
TURN_WINDOW = 60.0
"""Seconds for which the longest turn is told, at least; twice that at most."""

TICK_SECONDS = 0.005
"""Waits for a flag that end by their time do so together with others, and so much later at most."""
