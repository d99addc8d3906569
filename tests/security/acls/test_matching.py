"""Which of many filters take an entry."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dafka.security.acls.matching import Filters
from dafka.security.acls.terms import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_names = st.sampled_from(["*", "t", "te", "tea", "tee", "x", ""])
_principals = st.sampled_from(["User:a", "User:*"])
_hosts = st.sampled_from(["*", "10.0.0.1"])


def _some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


ACLS = st.builds(
    Acl,
    _some(ResourceType.TOPIC, ResourceType.GROUP),
    _names,
    _some(*_PATTERNS),
    _principals,
    _hosts,
    _some(Operation.READ, Operation.ALL),
    _some(Permission.DENY, Permission.ALLOW),
)
FILTERS = st.builds(
    AclFilter,
    _some(ResourceType.ANY, ResourceType.TOPIC, ResourceType.UNKNOWN, ResourceType.USER),
    st.none() | _names,
    _some(PatternType.ANY, PatternType.MATCH, PatternType.UNKNOWN, *_PATTERNS),
    st.none() | _principals,
    st.none() | _hosts,
    _some(Operation.ANY, Operation.READ, Operation.ALL),
    _some(Permission.ANY, Permission.ALLOW),
)


@given(st.lists(FILTERS, max_size=30), st.lists(ACLS, max_size=20))
def test_filters_together_take_what_each_of_them_takes(filters: list[AclFilter], acls: list[Acl]):
    together = Filters(filters)
    for acl in acls:
        wanted = [number for number, one in enumerate(filters) if one.takes(acl)]
        assert sorted(together.taking(acl)) == wanted
        assert sorted(together.taking(tuple(acl))) == wanted


def test_filters_are_not_compared_with_entries_that_they_do_not_take():
    """A thousand of them and 200 000 entries would take minutes."""
    acl = Acl(ResourceType.TOPIC, "t1", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)

    class Name(str):
        compared = 0

        def startswith(self, *prefix: Any) -> bool:
            Name.compared += 1
            return super().startswith(*prefix)

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return super().__eq__(other)

        def __lt__(self, other: str) -> bool:
            Name.compared += 1
            return super().__lt__(other)

        __hash__ = str.__hash__

    filters = [AclFilter(name=Name(f"t{number}"), pattern=PatternType.MATCH) for number in range(1000)]
    filters += [AclFilter(name=Name(f"t{number}"), principal="User:a") for number in range(1000)]
    together = Filters(filters)
    Name.compared = 0
    assert sorted(together.taking(acl)) == [1, 1001]
    prefix = acl._replace(name="t10", pattern=PatternType.PREFIXED)
    assert sorted(together.taking(prefix)) == [10, *range(100, 110), 1010]
    assert Name.compared < 60
