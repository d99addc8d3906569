"""What access control lists allow, beside a model that goes through all of them as Kafka's words say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dafka.security.acls.rules import EVERYTHING, Rules, hosts_of
from dafka.security.acls.terms import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
DONE = [one for one in Operation if one > Operation.ALL]
IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}

names = st.sampled_from(["*", "a", "ab", "abc", "b"])
principals = st.sampled_from(["User:*", "User:a", "User:b"])
hosts = st.sampled_from(["*", "1.1.1.1", "2.2.2.2"])
acls = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    principals,
    hosts,
    st.sampled_from([one for one in Operation if one >= Operation.ALL]),
    st.sampled_from([ALLOW, DENY]),
)


def acl(
    name="t",
    operation=Operation.READ,
    permission=ALLOW,
    *,
    kind=TOPIC,
    pattern=LITERAL,
    who="User:a",
    host="*",
):
    return Acl(kind, name, pattern, who, host, operation, permission)


def applies(one: Acl, kind: ResourceType, name: str) -> bool:
    if one.resource_type is not kind:
        return False
    if one.pattern is PREFIXED:
        return name.startswith(one.name)
    return one.name in (name, "*")


def model(
    known: set[Acl], principal: str, host: str, operation: Operation, kind, name, otherwise: bool
) -> bool:
    of_resource = [one for one in known if applies(one, kind, name)]
    if not of_resource:
        return otherwise
    mine = [one for one in of_resource if one.principal in (principal, "User:*") and one.host in (host, "*")]
    if any(one.permission is DENY and one.operation in (operation, Operation.ALL) for one in mine):
        return False
    enough = {operation, Operation.ALL} | IMPLYING.get(operation, set())
    return any(one.permission is ALLOW and one.operation in enough for one in mine)


@given(
    st.lists(st.tuples(acls, st.booleans()), max_size=25),
    st.sampled_from(["User:a", "User:b", "User:c"]),
    st.sampled_from(["1.1.1.1", "3.3.3.3"]),
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from(["a", "ab", "abcd", "b", "z", "*"]),
    st.booleans(),
)
def test_every_decision_is_that_of_the_model(changes, principal, host, kind, name, otherwise):
    rules, known = Rules(), set()
    for one, add in changes:
        if add:
            rules.add(one)
            known.add(one)
        else:
            rules.remove(one)
            known.discard(one)
    found = rules.operations(principal, (host,), kind, name, EVERYTHING if otherwise else 0)
    for operation in DONE:
        expected = model(known, principal, host, operation, kind, name, otherwise)
        assert bool(found >> operation & 1) is expected, operation


@given(st.lists(acls, max_size=12), st.sampled_from(["User:a", "User:c"]))
def test_any_resource_means_that_there_is_one_unless_only_all_prefixes_together_deny_it(known, principal):
    """A name that no pattern ends at is tried for each prefix; Kafka does not look for a name either."""
    rules = Rules(known)
    tried = [one.name for one in known if one.pattern is LITERAL and one.name != "*"]
    tried += [one.name + "~" for one in known if one.pattern is PREFIXED] + ["~"]
    write = Operation.WRITE
    expected = any(model(set(known), principal, "1.1.1.1", write, TOPIC, name, False) for name in tried)
    assert rules.may_any(principal, ("1.1.1.1",), write, TOPIC) >= expected
    if not any(one.permission is DENY for one in known):
        assert rules.may_any(principal, ("1.1.1.1",), write, TOPIC) is expected


def test_removed_rules_leave_nothing_behind():
    rules = Rules()
    some = [
        acl(name, operation, permission, pattern=pattern, who=who)
        for name in ("t", "tea")
        for operation in (Operation.READ, Operation.ALL)
        for permission in (ALLOW, DENY)
        for pattern in (LITERAL, PREFIXED)
        for who in ("User:a", "User:*")
    ]
    for one in some:
        rules.add(one)
        rules.add(one)
    for one in some:
        rules.remove(one)
        rules.remove(one)
    assert not rules._patterns and not rules._of and not any(rules._lengths.values())


def test_a_denied_wildcard_or_prefix_dominates_what_is_allowed_of_any_resource():
    write = Operation.WRITE

    def may(*known: Acl) -> bool:
        return Rules(known).may_any("User:a", ("h",), write, TOPIC)

    assert may(acl("t", write))
    assert not may(acl("t", Operation.READ)) and not may(acl("t", write, kind=GROUP))
    assert not may(acl("t", write), acl("t", write, DENY))
    assert not may(acl("tea", write), acl("t", write, DENY, pattern=PREFIXED))
    assert may(acl("t", write, pattern=PREFIXED), acl("tea", write, DENY, pattern=PREFIXED))
    assert may(acl("t", write, pattern=PREFIXED), acl("t", write, DENY))
    assert may(acl("*", write), acl("t", write, DENY))
    assert not may(acl("*", Operation.ALL), acl("*", write, DENY, who="User:*"))
    assert not may(acl("t", write, host="g"))


def test_a_host_is_known_by_each_of_its_names():
    assert hosts_of("10.0.0.1") == ("10.0.0.1",)
    assert hosts_of("::ffff:10.0.0.1") == ("10.0.0.1",)
    assert hosts_of("::1") == ("::1", "0:0:0:0:0:0:0:1")
    assert hosts_of("fe80::1%eth0") == ("fe80::1", "fe80:0:0:0:0:0:0:1")
    assert hosts_of("elsewhere") == ("elsewhere",)
    for host in ("::1", "0:0:0:0:0:0:0:1"):
        found = Rules([acl(host=host)]).operations("User:a", hosts_of("::1"), TOPIC, "t")
        assert found >> Operation.READ & 1


def test_a_filter_that_matches_takes_what_applies_to_a_resource():
    known = [
        acl("t"),
        acl("*"),
        acl("t", pattern=PREFIXED),
        acl("te", pattern=PREFIXED),
        acl("t", kind=GROUP),
    ]
    rules = {one for one in known if AclFilter(TOPIC, "t", PatternType.MATCH).takes(one)}
    assert rules == {acl("t"), acl("*"), acl("t", pattern=PREFIXED)}
