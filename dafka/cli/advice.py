"""Advice about errors of Kafka's protocol, whose names say only what is wrong."""

from __future__ import annotations

_ADVICE = {
    "ClusterAuthorizationFailedError": "this account lacks a right for the cluster: `dafka kafka acls list`",
    "GroupAuthorizationFailedError": "this account lacks a right for the group: `dafka kafka acls list`",
    "GroupIdNotFoundError": "`dafka kafka groups list` shows the groups that there are",
    "NonEmptyGroupError": "the group has members: end them first",
    "SecurityDisabledError": "a broker keeps access control lists if it is started with an authorizer: "
    "`dafka broker --authorizer`",
    "TopicAlreadyExistsError": "`dafka kafka topics alter` changes it, --if-not-exists leaves it as it is",
    "TopicAuthorizationFailedError": "this account lacks a right for the topic: `dafka kafka acls list`",
    "TransactionalIdNotFoundError": "`dafka kafka transactions list` shows the ids that there are",
    "UnknownTopicOrPartitionError": "`dafka kafka topics list` shows the topics that there are, "
    "`dafka kafka topics create` makes one",
}


def advised(error: Exception) -> str:
    """The error in words, and behind them what to do about it, where that is known."""
    names = getattr(error, "names", None) or (type(error).__name__,)  # of a RefusedError, or of kafka.errors
    advice = [_ADVICE[name] for name in dict.fromkeys(names) if name in _ADVICE]
    text = str(error)
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        text = f"{error.object!r:.200} is not UTF-8"  # an argument of octets that are not, in most cases
    if not advice:
        return text
    return "\n".join([text, *advice]) if "\n" in text else "; ".join([text.rstrip("."), *advice])
