"""Random documents, drawn from a seed: by the grammar alone, or over a schema, with what clients get wrong.

Loose(random).document()              any words in any place where the grammar has one
Fitting(random, schema).document()    fields, arguments and fragments that the schema has
spoiled(random, text)                 the same with a slip or two
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import cast

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLObjectType,
    GraphQLSchema,
    OperationType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_required_argument,
    is_required_input_field,
)

_NAMES = (
    "id",
    "posts",
    "author",
    "nodes",
    "edges",
    "node",
    "pageInfo",
    "__schema",
    "__type",
    "types",
    "fields",
    "on",
    "query",
    "fragment",
    "where",
    "args",
    "a",
    "b",
    "__typename",
    "mutation",
    "true",
)
_ABOUT = (
    "types",
    "fields",
    "args",
    "inputFields",
    "enumValues",
    "interfaces",
    "possibleTypes",
    "directives",
    "ofType",
    "ofType",
    "ofType",
    "type",
    "name",
    "kind",
)
_SCALARS = (
    "1",
    "-2.5e3",
    "-0",
    '"a b {"',
    '"\\"] @x: }"',
    '"""x } ( \\""" "q" \n # no """',
    "$v",
    "ENUM",
    "true",
    "null",
    '""',
)
Composite = GraphQLObjectType | GraphQLInterfaceType
_ALIASES = ("a", "b", "c", "d", "e", "f", "g", "id", "name")
_VALUES = {
    "Int": ("1", "2"),
    "Float": ("1.5", "2"),
    "Boolean": ("true", "false"),
    "Decimal": ('"1.00"', '"2.50"'),
    "BigInt": ('"1"', '"2"'),
    "DateTime": ('"2026-01-01T00:00:00Z"', '"2026-02-01T00:00:00Z"'),
    "Date": ('"2026-01-01"', '"2026-02-01"'),
}
_BETWEEN = (" ", ", ", "\n", " # a { comment: @a(\n", "\ufeff\t", ",,")


class Loose:
    """Documents that only the grammar holds together. Every fragment is there, and none is in a circle. With `about`, they are
    questions about the schema, which have words of their own."""

    def __init__(self, random: Random, about: bool = False) -> None:
        self.random = random
        self.about = about
        self.names = _ABOUT if about else _NAMES

    def document(self) -> str:
        names = [f"F{number}" for number in range(self.random.randint(0, 4))]
        parts = [
            f"fragment {name} on T{self.directives()} {self.selections(2, names[at + 1 :])}"
            for at, name in enumerate(names)
        ]
        for number in range(self.random.randint(1, 2)):
            kind = self.random.choice(("query", "mutation", "subscription"))
            # a type in brackets is taken for a list of one, so that there is a longer one
            variables = "($v: [Int!]! = [1, 2] @a, $w: X)" if self.chance(0.5) else ""
            parts.append(f"{kind} Q{number}{variables}{self.directives()} {self.operation(names)}")
        self.random.shuffle(parts)
        return "\n".join(parts)

    def operation(self, fragments: Sequence[str]) -> str:
        selected = self.selections(3, fragments)
        return f"{{ __schema {selected} }}" if self.about else selected

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def several(self, least: int, most: int, make: Callable[[], str]) -> str:
        between = self.random.choice(_BETWEEN)
        return between.join([make() for _ in range(self.random.randint(least, most))])

    def selections(self, deep: int, fragments: Sequence[str]) -> str:
        return "{ " + self.several(1, 4, lambda: self.selection(deep, fragments)) + " }"

    def selection(self, deep: int, fragments: Sequence[str]) -> str:
        kind = self.random.random()
        if kind < 0.15 and fragments:
            return "..." + self.random.choice(("", " ")) + self.random.choice(fragments) + self.directives()
        if kind < 0.3 and deep:
            return "..." + self.random.choice(("", " on T")) + self.directives() + self.selections(deep - 1, fragments)
        alias = self.random.choice(("x:", "types : ", "on:", "y: ")) if self.chance(0.2) else ""
        inner = self.selections(deep - 1, fragments) if deep and self.chance(0.6) else ""
        return alias + self.random.choice(self.names) + self.arguments() + self.directives() + inner

    def directives(self) -> str:
        if not self.chance(0.2):
            return ""
        arguments = ("", "(if: $v)", "(if: true)", "(a: [1, 2, 3], b: {c: 1})")
        return "".join(
            f" @{self.random.choice(('skip', 'include', 'on'))}{self.random.choice(arguments)}"
            for _ in range(self.random.randint(1, 2))
        )

    def arguments(self) -> str:
        return "(" + self.several(1, 3, self.argument) + ")" if self.chance(0.5) else ""

    def argument(self) -> str:
        if self.chance(0.3):
            return f"where: {self.filter(3)}"
        return f"{self.random.choice(('first', 'orderBy', 'id'))}: {self.value(3)}"

    def value(self, deep: int) -> str:
        kind = self.random.random()
        if kind < 0.15 and deep:
            return (
                "{"
                + self.several(0, 3, lambda: f"{self.random.choice(('eq', 'or', 'where'))}: {self.value(deep - 1)}")
                + "}"
            )
        if kind < 0.4 and deep:
            return "[" + self.several(0, 4, lambda: self.value(deep - 1)) + "]"
        return self.random.choice(_SCALARS)

    def filter(self, deep: int) -> str:
        return "{" + self.several(0, 3, lambda: self.term(deep)) + "}"

    def term(self, deep: int) -> str:
        kind = self.random.random()
        if kind < 0.5 or not deep:
            return "name: {" + self.several(0, 2, self.comparison) + "}"
        if kind < 0.7:
            return "or: [" + self.several(0, 3, lambda: self.filter(deep - 1)) + "]"
        return "not: " + (self.filter(deep - 1) if kind < 0.95 else "$v")

    def comparison(self) -> str:
        if self.chance(0.5):
            return "eq: " + self.random.choice(_SCALARS)
        return "in: [" + self.several(0, 3, lambda: self.random.choice(_SCALARS)) + "]"


class Fitting:
    """Documents that fit a schema, but for fields that cannot go together here and there."""

    def __init__(self, random: Random, schema: GraphQLSchema) -> None:
        self.random = random
        self.schema = schema
        self.variables: dict[str, str] = {}
        self.fragments: list[str] = []

    def document(self, kind: OperationType = OperationType.QUERY) -> str:
        self.variables, self.fragments = {}, []
        root = self.schema.get_root_type(kind)
        assert root is not None
        most = 1 if kind is OperationType.SUBSCRIPTION else 3
        selected = self.selections(root, self.random.randint(2, 4), most)
        variables = ", ".join(f"${name}: {type_name}" for name, type_name in self.variables.items())
        operation = f"{kind.value} Q{f'({variables})' if variables else ''} {selected}"
        return "\n".join((operation, *self.fragments))

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def selections(self, parent: Composite, deep: int, most: int = 3) -> str:
        """A selection. Some of it may stand there again: as it was, or with something else in it."""
        names = [
            name
            for name, field in parent.fields.items()
            if deep > 1 or not is_composite_type(get_named_type(field.type))
        ]
        found = (
            [self.selection(parent, self.random.choice(names), deep) for _ in range(self.random.randint(1, most))]
            if names
            else []
        )
        if not found or (most > 1 and self.chance(0.1)):
            found.append("__typename")
        self.random.shuffle(found)
        return "{ " + " ".join(found) + " }"

    def selection(self, parent: Composite, name: str, deep: int) -> str:
        kind = self.random.random()
        if kind < 0.1:
            return f"... on {parent.name}{self.directives()} {self.selections(parent, deep, 1)}"
        if isinstance(parent, GraphQLInterfaceType) and kind < 0.7:
            one = self.random.choice(self.schema.get_possible_types(parent))
            return f"... on {one.name}{self.directives()} {self.selections(one, deep, 2)}"
        if kind < 0.15:
            return f"...{self.directives()} {self.selections(parent, deep, 2)}"
        if kind < 0.22 and len(self.fragments) < 3:
            return self.spread(parent, deep)
        field = parent.fields[name]
        alias = f"{self.random.choice(_ALIASES)}: " if self.chance(0.2) else ""
        arguments = self.arguments(field)
        found = alias + name + arguments + self.directives() + self.inner(field, deep)
        if self.chance(0.35):  # the same once more, but for what need not be the same
            arguments = self.arguments(field) if self.chance(0.2) else arguments
            found = f"{found} {alias}{name}{arguments}{self.directives()}{self.inner(field, deep)}"
        return found

    def inner(self, field: GraphQLField, deep: int) -> str:
        target = get_named_type(field.type)
        return " " + self.selections(target, deep - 1) if isinstance(target, Composite) else ""

    def spread(self, parent: Composite, deep: int) -> str:
        name = f"F{len(self.fragments)}"
        self.fragments.append("")
        self.fragments[int(name[1:])] = f"fragment {name} on {parent.name} {self.selections(parent, deep, 2)}"
        return f"...{name}{self.directives()}"

    def directives(self) -> str:
        if not self.chance(0.15):
            return ""
        decides = self.variable("Boolean!") if self.chance(0.3) else self.random.choice(("true", "false"))
        return f" @{self.random.choice(('skip', 'include'))}(if: {decides})"

    def variable(self, type_name: str) -> str:
        name = "v" + re.sub(r"\W", lambda found: "LRN"["[]!".index(found[0])], type_name)
        self.variables[name] = type_name
        return f"${name}"

    def arguments(self, field: GraphQLField) -> str:
        given = [
            f"{name}: {self.value(argument.type)}" for name, argument in field.args.items() if self.takes(argument)
        ]
        self.random.shuffle(given)
        return f"({', '.join(given)})" if given else ""

    def takes(self, argument: GraphQLArgument) -> bool:
        return is_required_argument(argument) or self.chance(0.25)

    def value(self, kind: GraphQLInputType, deep: int = 2) -> str:
        """A value of a type, or a variable; few of each, so that some are the same."""
        if self.chance(0.1):
            return self.variable(str(kind))
        kind = cast("GraphQLInputType", get_nullable_type(kind))
        if isinstance(kind, GraphQLList):
            least = int(str(kind.of_type).rstrip("!").endswith("GroupBy"))  # groups have a key
            return "[" + ", ".join(self.value(kind.of_type, deep) for _ in range(self.random.randint(least, 2))) + "]"
        if isinstance(kind, GraphQLInputObjectType):
            return self.object(kind, deep)
        if isinstance(kind, GraphQLEnumType):
            return str(self.random.choice([*kind.values]))
        return self.random.choice(_VALUES.get(str(kind), ('"x"', '"y"')))

    def object(self, kind: GraphQLInputObjectType, deep: int) -> str:
        if kind.is_one_of:
            return self.one_of(kind, deep)
        names = [
            name
            for name, field in kind.fields.items()
            if is_required_input_field(field) or (deep and self.chance(0.15))
        ]
        return "{" + ", ".join(f"{name}: {self.value(kind.fields[name].type, deep - 1)}" for name in names) + "}"

    def one_of(self, kind: GraphQLInputObjectType, deep: int) -> str:
        """Exactly one key; deep down, one that leads no further."""
        types = {name: get_nullable_type(field.type) for name, field in kind.fields.items()}
        ends = [name for name, each in types.items() if not isinstance(each, GraphQLInputObjectType)]
        name = self.random.choice(ends if ends and deep < 2 else [*types])
        found = types[name]
        if isinstance(found, GraphQLInputObjectType):
            return f"{{{name}: {self.object(found, deep - 1)}}}"
        return f"{{{name}: {self.random.choice([*cast('GraphQLEnumType', found).values])}}}"


_WORD = re.compile(r"[A-Za-z_]\w*|\d+|[^\s\w]")
_SLIPS = (
    "id",
    "name",
    "posts",
    "author",
    "colour",
    "Post",
    "User",
    "Int",
    "Where",
    "1",
    "-1.5",
    '"x"',
    "null",
    "true",
    "ASC",
    "$v",
    "$w",
    "...F0",
    "...F9",
    "@skip(if: true)",
    "@skip",
    "@deprecated",
    "@stream",
    "{ id }",
    "(id: 1)",
    "first: 1,",
    "(first: 1)",
    "__typename",
    "... on Post { id }",
    "... on User { id }",
    "... on Int { id }",
    "fragment F0 on User { id }",
    "{ __schema { types { name } } }",
    "on",
    "[1]",
    "{}",
    "{eq: 1}",
    ": Int",
    "!",
)


def spoiled(random: Random, text: str) -> str:
    """A text in which a word or two are left out, doubled, or become others."""
    for _ in range(random.randint(1, 2)):
        found = [*_WORD.finditer(text)]
        if not found:
            return text
        word = random.choice(found)
        new = random.choice(
            (random.choice(_SLIPS), random.choice(found)[0], f"{word[0]} {random.choice(_SLIPS)}", word[0] * 2, "")
        )
        text = f"{text[: word.start()]}{new} {text[word.end() :]}"
    return text
