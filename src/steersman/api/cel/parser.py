"""From words to a tree, macros written out as `Fold`s. Grammar: the CEL language definition."""

from __future__ import annotations

from typing import Final

from steersman.api.cel.faults import CompileError
from steersman.api.cel.lexer import RESERVED, Word, words
from steersman.api.cel.tree import BIND, Call, Const, Fold, Ident, ListNode, MapNode, Node, Select, StructNode

MAX_DEPTH: Final = 100
"""Deepest nesting of an expression: cel-go stops at 250, Python's own stack must have room for three frames each."""
MAX_NODES: Final = 50_000
"""Nodes of one expression: what a longest possible text of real operators has."""
BINARY: Final = {
    "||": 1, "&&": 2,
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4), **dict.fromkeys(("*", "/", "%"), 5),
}  # fmt: skip
MIN_INT: Final = 1 << 63
ONE_NAME: Final = {("all", 2), ("exists", 2), ("exists_one", 2), ("existsOne", 2), ("map", 2), ("map", 3),
                   ("filter", 2), ("optMap", 2), ("optFlatMap", 2), ("sortBy", 2)}  # fmt: skip
TWO_NAMES: Final = {("all", 3), ("exists", 3), ("existsOne", 3), ("exists_one", 3), ("transformList", 3),
                    ("transformList", 4), ("transformMap", 3), ("transformMap", 4), ("transformMapEntry", 3),
                    ("transformMapEntry", 4)}  # fmt: skip
EXPECTED: Final = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)


def parse(source: str, binds: bool = False) -> Node:
    """The tree of an expression. `binds`: cel.bind() is a macro. Raises `CompileError`."""
    return _Parser(source, binds).run()


class _Parser:
    def __init__(self, source: str, binds: bool) -> None:
        self.source = source
        self.binds = binds
        self.words = words(source)
        self.at = 0
        self.depth = 0
        self.made = 0

    # -- words ---------------------------------------------------------------------------------------------

    @property
    def word(self) -> Word:
        return self.words[self.at]

    def fail(self, at: int, message: str) -> CompileError:
        return CompileError(self.source, [(at, message)])

    def take(self, text: str) -> bool:
        word = self.word
        if word.kind == "op" and word.text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            word = self.word
            raise self.fail(word.at, f"Syntax error: mismatched input '{word.text}' expecting '{text}'")

    def name(self) -> Word:
        word = self.word
        if word.kind == "quoted":
            word = word._replace(text=word.text[1:-1])
        elif word.kind != "name":
            raise self.fail(word.at, f"Syntax error: mismatched input '{word.text}' expecting IDENTIFIER")
        self.at += 1
        return word

    def kept(self, node: Node) -> Node:
        """The node, if the tree is not too big with it."""
        self.made += 1
        if node.depth > MAX_DEPTH:
            raise self.fail(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")
        if self.made > MAX_NODES:
            raise self.fail(-1, f"expression has more than {MAX_NODES} parts")
        return node

    # -- grammar -------------------------------------------------------------------------------------------

    def run(self) -> Node:
        node = self.expression()
        word = self.word
        if word.kind != "end":
            raise self.fail(word.at, f"Syntax error: extraneous input '{word.text}' expecting <EOF>")
        return node

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")
        node = self.binary(1)
        at = self.word.at
        if self.take("?"):
            yes = self.binary(1)
            self.expect(":")
            node = self.kept(Call(at, "_?_:_", [node, yes, self.expression()]))
        self.depth -= 1
        return node

    def binary(self, level: int) -> Node:
        """Operators that bind at least as `level`; `&&` and `||` of one level become one node."""
        node = self.unary()
        while True:
            word = self.word
            binds = BINARY.get(word.text, 0) if word.kind == "op" else 0
            if binds < level or not binds:
                return node
            self.at += 1
            right = self.binary(binds + 1)
            name = "@in" if word.text == "in" else f"_{word.text}_"
            if binds <= 2 and isinstance(node, Call) and node.name == name and node.depth > right.depth:
                node.args.append(right)  # one wide node rather than a deep one
                self.made += 1
            else:
                node = self.kept(Call(word.at, name, [node, right]))

    def unary(self) -> Node:
        word = self.word
        if word.kind == "op" and word.text in "-!":
            count = 0
            while self.take(word.text):
                count += 1
            if word.text == "-" and count == 1 and (folded := self.negative(word)) is not None:
                return self.members(folded)
            node = self.members(self.primary())
            name = "-_" if word.text == "-" else "!_"
            return self.kept(Call(word.at, name, [node])) if count % 2 else node
        return self.members(self.primary())

    def negative(self, sign: Word) -> Node | None:
        """A number with its sign."""
        word = self.word
        if word.kind != "const" or type(word.value) not in (int, float):
            return None
        self.at += 1
        if type(word.value) is int and word.value > MIN_INT:
            raise self.fail(sign.at, "invalid int literal")
        return Const(sign.at, -word.value)

    def members(self, node: Node) -> Node:
        """What follows a primary: fields, calls, indices."""
        while True:
            word = self.word
            if self.take("."):
                optional = self.take("?")
                field = self.name()
                if not optional and self.word.text == "(" and self.word.kind == "op":
                    node = self.method(node, field)
                else:
                    node = self.kept(Select(word.at, node, field.text, optional=optional))
            elif self.take("["):
                optional = self.take("?")
                index = self.expression()
                self.expect("]")
                node = self.kept(Call(word.at, "_[?_]" if optional else "_[_]", [node, index]))
            elif word.text == "{" and word.kind == "op" and (struct := _dotted(node)):
                node = self.kept(self.struct(struct))
            else:
                return node

    def primary(self) -> Node:
        word = self.word
        if word.kind == "const":
            self.at += 1
            if type(word.value) is int and word.value >= MIN_INT:
                raise self.fail(word.at, "invalid int literal")
            return self.kept(Const(word.at, word.value))
        if self.take("("):
            node = self.expression()
            self.expect(")")
            return node
        if self.take("["):
            return self.kept(self.listing(word.at))
        if self.take("{"):
            return self.kept(self.mapping(word.at))
        leading = self.take(".")
        if self.word.kind != "name":
            found = self.word
            raise self.fail(found.at, f"Syntax error: mismatched input '{found.text}' expecting {{{EXPECTED}}}")
        name = self.name()
        if name.text in RESERVED:
            raise self.fail(name.at, f"reserved identifier: {name.text}")
        opening = self.word.at
        if self.take("("):
            return self.kept(self.call(opening, name.text, self.arguments(")")))
        return self.kept(Ident(word.at if leading else name.at, name.text))

    def arguments(self, end: str) -> list[Node]:
        out: list[Node] = []
        while not self.take(end):
            if out:
                self.expect(",")
                if end != ")" and self.take(end):
                    break
            out.append(self.expression())
        return out

    def listing(self, at: int) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self.take("]"):
            if items:
                self.expect(",")
                if self.take("]"):
                    break
            if self.take("?"):
                optional.add(len(items))
            items.append(self.expression())
        return ListNode(at, items, frozenset(optional))

    def mapping(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self.take("}"):
            if entries:
                self.expect(",")
                if self.take("}"):
                    break
            optional = self.take("?")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
        return MapNode(at, entries)

    def struct(self, name: str) -> Node:
        at = self.word.at
        self.expect("{")
        entries: list[tuple[str, Node, bool, int]] = []
        while not self.take("}"):
            if entries:
                self.expect(",")
                if self.take("}"):
                    break
            optional = self.take("?")
            field = self.name()
            place = self.word.at
            self.expect(":")
            entries.append((field.text, self.expression(), optional, place))
        return StructNode(at, name, entries)

    # -- calls and macros ----------------------------------------------------------------------------------

    def call(self, at: int, name: str, args: list[Node]) -> Node:
        if name == "has" and len(args) == 1:
            tested = args[0]
            if not isinstance(tested, Select):
                raise self.fail(tested.at, "invalid argument to has() macro")
            return Select(at, tested.operand, tested.field, test=True)
        return Call(at, name, args)

    def method(self, target: Node, name: Word) -> Node:
        at = self.word.at
        self.expect("(")
        args = self.arguments(")")
        form = (name.text, len(args))
        if self.binds and form == (BIND, 3) and isinstance(target, Ident) and target.name == "cel":
            if not isinstance(args[0], Ident):
                raise self.fail(args[0].at, "cel.bind() variable names must be simple identifiers")
            return self.kept(Fold(at, BIND, args[1], (args[0].name,), args[2:]))
        if form in ONE_NAME or form in TWO_NAMES:
            count = 2 if form in TWO_NAMES else 1
            names = []
            for arg in args[:count]:
                if not isinstance(arg, Ident):
                    raise self.fail(
                        arg.at, "argument must be a simple name" if count == 1 else "argument must be an identifier"
                    )
                names.append(arg.name)
            if count == 2 and names[0] == names[1]:
                raise self.fail(args[1].at, f"duplicate variable name: {names[0]}")
            if "__result__" in names:
                raise self.fail(args[0].at, "iteration variable overwrites accumulator variable")
            return self.kept(Fold(at, name.text.replace("exists_one", "existsOne"), target, tuple(names), args[count:]))
        return self.kept(Call(at, name.text, args, target))


def _dotted(node: Node) -> str:
    """The name a chain of names is, "" for anything else."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        head = _dotted(node.operand)
        return head and f"{head}.{node.field}"
    return ""


dotted = _dotted
