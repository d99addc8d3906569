"""``Retention`` under the name that programs import it by: what a store lets go of, and when."""

from dafka.commit.retention import Retention

__all__ = ["Retention"]
