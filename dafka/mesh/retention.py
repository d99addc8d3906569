"""``Retention`` under the name that programs import it by: which records a store deletes, and when."""

from dafka.commit.retention import Retention

__all__ = ["Retention"]
