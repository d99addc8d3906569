"""The audit log: who connected, who failed to, and who was refused what. No secret is ever in it.

Names come from clients: whatever would begin another line, or is not shown, is escaped, so that nobody writes
lines of somebody else.
"""

from __future__ import annotations

import logging

audit = logging.getLogger("dafka.audit")


def _on_one_line(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    if not text.isprintable():
        record.msg = "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
        )
        record.args = None
    return True


audit.addFilter(_on_one_line)
