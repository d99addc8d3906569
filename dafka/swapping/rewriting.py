"""One file's imports of ``kafka`` rewritten to ``compat.kafka``, or back, with everything else as it was.

The names that a file binds stay the same, so nothing that uses them changes:

====================================  =================================================================
``from kafka.errors import X``        ``from compat.kafka.errors import X``
``import kafka.errors as e``          ``import compat.kafka.errors as e``
``import kafka``                      ``from compat import kafka``
``import json, kafka``                ``import json, compat.kafka as kafka``
``import kafka.errors``               ``import compat.kafka.errors, compat.kafka as kafka``
``mock.patch("kafka.KafkaProducer")`` ``mock.patch("compat.kafka.KafkaProducer")``, and other calls that
                                      take a module by its name; keys of ``sys.modules``
====================================  =================================================================

Only absolute names whose first part is ``kafka`` are meant; ``from . import kafka`` and ``app.kafka`` are
other packages. A use that may mean kafka-python, but cannot be decided from the source, is left and noted.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from dafka.swapping.expressions import (
    OURS,
    THEIRS,
    as_kafka,
    beginning,
    bound_name,
    dotted,
    import_from,
    is_as_kafka,
    is_below,
    is_sys_modules,
    strings,
    text_of,
)

# Parts of kafka-python, of old releases too: a string that names one of these is likely to mean a module.
PARTS = (
    "admin|benchmarks|cli|client|client_async|client_selector|cluster|codec|common|conn|consumer|context|"
    "coordinator|errors|future|metrics|net|partitioner|producer|protocol|record|sasl|serializer|"
    "socks5_wrapper|structs|util|vendor|version|BrokerConnection|Kafka\\w+|OffsetAndMetadata|SimpleClient|"
    "SimpleConsumer|SimpleProducer|TopicPartition"
)

# Calls that take the name of a module, or of something in it, as their first argument or one of these.
BY_NAME = {
    "find_spec",
    "import_module",
    "import_object",
    "import_string",
    "importorskip",
    "load_object",
    "patch",
    "resolve_name",
    "run_module",
}
NAME_KEYWORDS = {"dotted_path", "import_name", "in_dict", "mod_name", "modname", "name", "package", "target"}


class Note(NamedTuple):
    """Something that was left for a person to decide."""

    line: int
    text: str


class Rewriting(NamedTuple):
    """The new source, the same object if nothing had to change, and what was left, by line."""

    source: bytes
    notes: list[Note]


class NotPythonError(Exception):
    """A source that this Python's grammar does not cover."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        super().__init__(text)


def rewrite(source: bytes, *, back: bool = False, local: str | None = None) -> Rewriting:
    """Swap the imports of one file.

    ``back``: from ``compat.kafka`` to ``kafka``. ``local``: why imports have to be left in this file, namely
    that the code base has a module of its own under one of the two names; they are noted then.

    Raises :class:`NotPythonError`.
    """
    if THEIRS.encode() not in source:
        return Rewriting(source, [])
    try:
        module = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise NotPythonError(error.raw_line, error.message) from None
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise NotPythonError(getattr(error, "lineno", None) or 1, str(error)) from None
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    names = _CompatNames()
    module.visit(names)
    swap = _Back(names.elsewhere, local) if back else _Swap(names.bound, local)
    changed = wrapper.visit(swap)
    notes = sorted(set(swap.notes))
    return Rewriting(changed.bytes if swap.changed else source, notes)


class _CompatNames(cst.CSTVisitor):
    """Looks for other meanings of the name ``compat`` in a file."""

    def __init__(self) -> None:
        self.bound = False  # it names something that is not the package above compat.kafka
        self.elsewhere = False  # ... or is used other than in "compat.kafka"

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            name = dotted(alias.name)
            bound = bound_name(alias) or name.partition(".")[0]
            self.bound |= bound == "compat" and not is_below(name, OURS)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        if not isinstance(node.names, cst.ImportStar):
            self.bound |= any((bound_name(alias) or dotted(alias.name)) == "compat" for alias in node.names)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if dotted(node) == OURS:
            return False
        node.value.visit(self)  # not the attribute's own name: x.compat is not a variable
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == "compat":
            self.bound = self.elsewhere = True


class _Swap(cst.CSTTransformer):
    """From ``kafka`` to ``compat.kafka``."""

    METADATA_DEPENDENCIES = (PositionProvider,)
    old, new = THEIRS, OURS

    def __init__(self, compat_is_taken: bool = False, local: str | None = None) -> None:
        super().__init__()
        self.notes: list[Note] = []
        self.changed = False
        self._compat_is_taken = compat_is_taken
        self._local = local
        self._names: set[cst.CSTNode] = set()  # strings that name a module
        self._decided: set[cst.CSTNode] = set()  # strings that need no further look
        self._suspicious = re.compile(rf"{re.escape(self.old)}\.(?:{PARTS})(?:\.\w+)*")

    def note(self, node: cst.CSTNode, text: str) -> None:
        self.notes.append(Note(self.get_metadata(PositionProvider, node).start.line, text))

    # -- import statements ----------------------------------------------------------------------

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> Any:
        module = updated_node.module
        if updated_node.relative or module is None or not is_below(dotted(module), self.old):
            return updated_node
        if self._leave_local(original_node):
            return updated_node
        return self._done(updated_node.with_changes(module=self._renamed(module)))

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> Any:
        if not any(is_below(dotted(alias.name), self.old) for alias in updated_node.names):
            return updated_node
        if self._leave_local(original_node):
            return updated_node
        return self._import(original_node, updated_node)

    def _import(self, original: cst.Import, node: cst.Import) -> Any:
        if len(node.names) == 1 and dotted(node.names[0].name) == THEIRS and not node.names[0].asname:
            return self._done(import_from(node, "compat", cst.ImportAlias(cst.Name(THEIRS))))
        aliases, bare = [], False
        for alias in node.names:
            if not is_below(dotted(alias.name), THEIRS):
                aliases.append(alias)
            elif dotted(alias.name) == THEIRS and not alias.asname:
                aliases.append(as_kafka(alias.comma))
            else:
                bare |= not alias.asname
                aliases.append(alias.with_changes(name=self._renamed(alias.name)))
        if bare:
            if self._compat_is_taken:
                self.note(
                    original,
                    'left: "import kafka.x" would need the name "compat", which means something else in this '
                    'file; write "from kafka import x" or "import kafka.x as y" first',
                )
                return node
            aliases.append(as_kafka())
        return self._done(node.with_changes(names=aliases))

    def _leave_local(self, node: cst.CSTNode) -> bool:
        if self._local is not None:
            self.note(node, f"left: {self._local}")
        return self._local is not None

    def _renamed(self, name: Any) -> Any:
        """The dotted name with another beginning."""
        if isinstance(name, cst.Attribute):
            return name.with_changes(value=self._renamed(name.value))
        return cst.Attribute(cst.Name("compat"), name)

    def _done(self, node: Any) -> Any:
        self.changed = True
        return node

    # -- names in strings -----------------------------------------------------------------------

    def visit_Call(self, node: cst.Call) -> None:
        callee = dotted(node.func).split(".")
        positional = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        keywords = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        first: Any = positional[0] if positional else None
        last, before = callee[-1], callee[-2] if len(callee) > 1 else ""
        if last == "__import__":
            self._dunder_import(node, positional, keywords)
        elif last in BY_NAME or (before == "patch" and last in ("dict", "multiple")):
            for value in (first, *(keywords.get(name) for name in NAME_KEYWORDS)):
                self._name(value, inside=last == "patch" or before == "patch")
            if last in ("find_spec", "import_module") and len(positional) > 1:
                self._name(positional[1])
            if last == "dict" and is_sys_modules(first if first is not None else keywords.get("in_dict")):
                for values in (*positional[1:2], keywords.get("values")):
                    for element in values.elements if isinstance(values, cst.Dict) else ():
                        self._name(getattr(element, "key", None))
        elif last in ("setattr", "delattr") and before:
            self._name(first, inside=True)
        elif last in ("setitem", "delitem") and is_sys_modules(first):
            self._name(positional[1] if len(positional) > 1 else None)
        elif callee[:-1] == ["sys", "modules"]:
            self._name(first)
        elif last == "getLogger" and text_of(first) is not None and is_below(text_of(first), self.old):
            self._decided.add(first)
            self.note(
                first,
                f"left: the logger {text_of(first)!r}; the three clients log below {self.new!r}, everything "
                f"else logs as before",
            )

    def _dunder_import(self, node: cst.Call, positional: list[Any], keywords: dict[str, Any]) -> None:
        name: Any = positional[0] if positional else keywords.get("name")
        names = positional[3] if len(positional) > 3 else keywords.get("fromlist")
        if isinstance(names, cst.List | cst.Tuple) and names.elements:
            self._name(name)
        elif is_below(text_of(name) or "", self.old):
            self._decided.add(name)
            self.note(node, "left: __import__ without a fromlist returns the first of the packages")

    def visit_Subscript(self, node: cst.Subscript) -> None:
        if is_sys_modules(node.value):
            for element in node.slice:
                self._name(getattr(element.slice, "value", None))

    def visit_Comparison(self, node: cst.Comparison) -> None:
        for target in node.comparisons:
            if isinstance(target.operator, cst.In | cst.NotIn) and is_sys_modules(target.comparator):
                self._name(node.left)

    def visit_Annotation(self, node: cst.Annotation) -> None:
        # Names in quoted annotations are those that the file binds, and they stay.
        self._decided.update(strings(node))

    def _name(self, value: Any, inside: bool = False) -> None:
        """``value`` names a module, or with ``inside`` something in one: take it for renaming."""
        start, whole = beginning(value)
        if start is None:
            return
        text = start.value if isinstance(start, cst.FormattedStringText) else text_of(start)
        if text is None or not text.startswith(self.old) or self._local is not None:
            return
        if text.startswith((self.old + ".", self.old + ":")) or (text == self.old and whole and not inside):
            self._names.add(start)
        elif text == self.old and not whole:
            self.note(value, f"left: a computed name that begins with {self.old!r}")

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> Any:
        if original_node in self._names:
            opening = updated_node.prefix + updated_node.quote
            content = updated_node.value[len(opening) :]
            return self._done(updated_node.with_changes(value=opening + self.new + content[len(self.old) :]))
        if original_node not in self._decided and self._local is None:
            text = text_of(original_node)
            if text is not None and self._suspicious.fullmatch(text):
                self.note(original_node, f"left: the string {text!r}, which may name a module")
        return updated_node

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> Any:
        if original_node in self._names:
            return self._done(updated_node.with_changes(value=self.new + updated_node.value[len(self.old) :]))
        return updated_node


class _Back(_Swap):
    """From ``compat.kafka`` to ``kafka``."""

    old, new = OURS, THEIRS

    def __init__(self, compat_elsewhere: bool, local: str | None = None) -> None:
        super().__init__(local=local)
        self._rename_uses = False
        self._compat_elsewhere = compat_elsewhere

    def _renamed(self, name: Any) -> Any:
        if dotted(name) == OURS:
            return name.attr
        return name.with_changes(value=self._renamed(name.value))

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> Any:
        module, names = updated_node.module, updated_node.names
        if updated_node.relative or module is None or isinstance(names, cst.ImportStar) or self._local:
            return super().leave_ImportFrom(original_node, updated_node)
        if dotted(module) != "compat" or all(dotted(alias.name) != THEIRS for alias in names):
            return super().leave_ImportFrom(original_node, updated_node)
        if len(names) > 1:
            self.note(original_node, 'left: "from compat import" of several names')
            return updated_node
        alias = names[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return self._done(cst.Import([alias], semicolon=updated_node.semicolon))

    def _import(self, original: cst.Import, node: cst.Import) -> Any:
        # "import compat.kafka.errors, compat.kafka as kafka" is "import kafka.errors".
        names = list(node.names)
        submodules = (dotted(alias.name).startswith(OURS + ".") and not alias.asname for alias in names)
        if any(submodules) and is_as_kafka(names[-1]):
            names.pop()
            names[-1] = names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        elif any(is_below(dotted(alias.name), OURS) and not alias.asname for alias in names):
            if self._compat_elsewhere:
                self.note(original, 'left: "compat" is used for more than "compat.kafka" in this file')
                return node
            self._rename_uses = True
        aliases = []
        for alias in names:
            if is_as_kafka(alias) and len(names) > 1:
                alias = alias.with_changes(asname=None)
            if is_below(dotted(alias.name), OURS):
                alias = alias.with_changes(name=self._renamed(alias.name))
            aliases.append(alias)
        return self._done(node.with_changes(names=aliases))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> Any:
        # After "import compat.kafka" the uses are renamed along with it.
        if self._rename_uses and dotted(original_node) == OURS:
            return self._done(cst.Name(THEIRS, lpar=updated_node.lpar, rpar=updated_node.rpar))
        return updated_node
