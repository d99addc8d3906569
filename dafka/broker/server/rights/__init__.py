"""The rights that each API needs, and the answers to clients without them.

:mod:`.needs` is the table; a guard for each API asks for what it says, answers with Kafka's errors for what
is refused, and has the API's own function answer the rest. Without access control lists this code does not
run.
"""

from __future__ import annotations
