"""Documents that are small and mean very much: by alias, fragment, directive, repeated field, and small selections."""

from __future__ import annotations

from tests.contract.http.data import ANN
from tests.proof.attacks.case import Case, chain, family, post, times, tower

U = f'user(id: "{ANN}")'


def fan(levels: int, width: int) -> str:
    """A few fragments, each with a few aliases of the next: width ** levels fields in all."""
    parts = []
    for level in range(levels):
        kind, step = ("User", "posts(first: 1)") if level % 2 == 0 else ("Post", "author")
        inner = f"...F{level + 1}"
        parts.append(f"fragment F{level} on {kind} {{ {times(width, f'a{level}x§: {step} {{ {inner} }}')} }}")
    last = "User" if levels % 2 == 0 else "Post"
    return f"{{ {U} {{ ...F0 }} }} {' '.join(parts)} fragment F{levels} on {last} {{ id }}"


def doubling(levels: int, kind: str = "User", inside: str = "id") -> str:
    """Every fragment spreads the next one twice."""
    parts = times(levels, f"fragment F§ on {kind} {{ ...G§ ...G§ }}")
    links = " ".join(f"fragment G{n} on {kind} {{ ...F{n + 1} }}" for n in range(levels))
    return f"{{ {U} {{ ...F0 }} }} {parts} {links} fragment F{levels} on {kind} {{ {inside} }}"


def fan_out(levels: int) -> str:
    """Binary fan-out through fields that differ: no selection is like another."""
    parts = " ".join(
        f"fragment F{n} on User {{ posts(first: 1) {{ author {{ ...F{n + 1} }} }} comments(first: 1) {{ author {{ ...F{n + 1} }} }} }}"
        for n in range(levels)
    )
    return f"{{ {U} {{ ...F0 }} }} {parts} fragment F{levels} on User {{ id }}"


def spread_chain(length: int, step: str = "...F{}") -> str:
    """Each fragment leads to the next."""
    parts = " ".join(f"fragment F{n} on User {{ {step.format(n + 1)} }}" for n in range(length))
    return f"{{ {U} {{ ...F0 }} }} {parts} fragment F{length} on User {{ id }}"


def circle(length: int) -> str:
    parts = " ".join(f"fragment F{n} on User {{ id ...F{(n + 1) % length} }}" for n in range(length))
    return f"{{ {U} {{ ...F0 }} }} {parts}"


ALIASES = family(
    "alias",
    [
        post("30 of a plain field", f"{{ users(first: 1) {{ {times(30, 'a§: name')} }} }}", "answered"),
        post("31 of a plain field", f"{{ users(first: 1) {{ {times(31, 'a§: name')} }} }}", "prepass", "TOO_COMPLEX"),
        post("31 of a root field", f"{{ {times(31, 'a§: users(first: 1) { id }')} }}", "prepass", "TOO_COMPLEX"),
        post("21 root fields", f"{{ {times(21, 'a§: __typename')} }}", "prepass", "TOO_COMPLEX"),
        post(
            "20 root fields that are dear",
            f"{{ {times(20, 'a§: users(first: 100) { posts(first: 10) { id } }')} }}",
            "other",
            "TOO_COMPLEX",
        ),
        post("600 of __typename", f"{{ {times(600, 'a§: __typename')} }}", "prepass", "TOO_COMPLEX"),
        post("1,000 of __typename", f"{{ {times(1_000, 'a§: __typename')} }}", "text", "TOO_COMPLEX"),
        post("9,000 of __typename", f"{{ {times(9_000, 'a§:id')} }}", "text", "TOO_COMPLEX"),
        post(
            "31 in two fragments",
            f"{{ users(first: 1) {{ ...A ...B }} }} fragment A on User {{ {times(15, 'a§: id')} }} "
            f"fragment B on User {{ {times(16, 'b§: id')} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "31 in inline fragments",
            f"{{ users(first: 1) {{ {times(31, '... { a§: id }')} }} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "31 in an operation that does not run",
            f"query A {{ __typename }} query B {{ {times(31, 'a§: __typename')} }}",
            "prepass",
            "TOO_COMPLEX",
            operation="A",
        ),
        post(
            "31 in a fragment that nobody spreads",
            f"{{ __typename }} fragment F on User {{ {times(31, 'a§: id')} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "31 under @skip",
            f"{{ users(first: 1) @skip(if: true) {{ {times(31, 'a§: id')} }} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "31 changes",
            f"mutation {{ {times(31, f'a§: deleteUser(id: {chr(34)}x§{chr(34)}) {{ id }}')} }}",
            "prepass",
            "TOO_COMPLEX",
        ).by("admin"),
        post(
            "21 changes",
            f"mutation {{ {times(21, f'a§: deleteUser(id: {chr(34)}x§{chr(34)}) {{ id }}')} }}",
            "prepass",
            "TOO_COMPLEX",
        ).by("admin"),
        post("one key for two fields", "{ users(first: 1) { a: id a: name } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "keys of other languages",
            "{ users(first: 1) { __proto__: id constructor: id __class__: id toString: id } }",
            "answered",
        ),
        post("30 through fragments, 3 to the 9th", fan(9, 3), "prepass", "TOO_COMPLEX"),
        post("28 through fragments, 7 to the 4th", fan(4, 7), "prepass", "TOO_COMPLEX"),
        post("29 through fragments, price within depth", fan(6, 4), "prepass", "TOO_COMPLEX"),
        post("a name of 90 KB", f"{{ users(first: 1) {{ {'x' * 90_000}: id }} }}", "text", "TOO_COMPLEX"),
        post("an unknown field of 90 KB", f"{{ users(first: 1) {{ {'x' * 90_000} }} }}", "text", "TOO_COMPLEX"),
    ],
)


FRAGMENTS = family(
    "fragment",
    [
        post(
            "in itself",
            "{ users { ...A } } fragment A on User { posts { author { ...A } } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "in itself at once", "{ users { ...A } } fragment A on User { ...A }", "other", "GRAPHQL_VALIDATION_FAILED"
        ),
        post("in a circle of two", circle(2), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("in a circle of 60", circle(60), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("in a circle of 180", circle(180), "text", "TOO_DEEP"),
        post(
            "in a circle on the root",
            "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "in a circle that nobody enters",
            "{ __typename } fragment A on User { ...B } fragment B on User { ...A }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "in itself inside an inline one",
            "{ users { ...A } } fragment A on User { ... { ... { ...A } } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "a hundred circles that meet",
            f"{{ users {{ ...F0 }} }} {times(30, 'fragment F§ on User { ' + times(30, '...F~').replace('~', '§') + ' }')}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "all spread all",
            "{ users { ...F0 } } "
            + " ".join(f"fragment F{n} on User {{ {' '.join(f'...F{m}' for m in range(20))} }}" for n in range(20)),
            "prepass",
            "TOO_COMPLEX",
        ),
        post("doubled 5 times", doubling(5), "answered"),
        post("doubled 20 times", doubling(20), "prepass", "TOO_COMPLEX"),
        post("doubled 60 times", doubling(60), "text", "TOO_DEEP"),
        post("fanned out 4 times", fan_out(4), "answered"),
        post("fanned out 12 times", fan_out(12), "prepass", "TOO_DEEP"),
        post("fanned out 40 times", fan_out(40), "prepass", "TOO_DEEP"),
        post(
            "a chain of 160 through relations",
            spread_chain(80, "posts(first: 1) {{ author {{ ...F{} }} }}"),
            "prepass",
            "TOO_DEEP",
        ),
        post(
            "99 that nobody spreads",
            "{ __typename } " + times(99, "fragment F§ on User { id name posts(first: 1) { id } }"),
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "280 that nobody spreads",
            "{ __typename } " + times(280, "fragment F§ on User { id }"),
            "text",
            "TOO_COMPLEX",
        ),
        post(
            "99 of one name",
            "{ users { ...F } } " + times(99, "fragment F on User { id name posts(first: 1) { id } }"),
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post("280 of one name", "{ users { ...F } } " + times(280, "fragment F on User { id }"), "text", "TOO_COMPLEX"),
        post(
            "900 spreads of one",
            f"{{ users {{ {times(900, '...A')} }} }} fragment A on User {{ id }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "5 times 90 spreads of one",
            f"{{ {U} {{ {times(5, 'posts(first: 1) { author { ' + times(90, '...A') + ' } }')} }} }} fragment A on User {{ id }}",
            "answered",
        ),
        post(
            "900 spreads of unknown ones",
            f"{{ users {{ {times(9, '... { ' + times(99, '...X') + ' }')} }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "99 spreads of 90 fragments",
            f"{{ users {{ {times(90, '...F§')} }} }} {times(90, 'fragment F§ on User { id name }')}",
            "answered",
        ),
        post("inline, 60 levels", "{ " + tower(60, "... { ", "__typename ", "} ") + "}", "answered"),
        post("inline, 65 levels", "{ " + tower(65, "... { ", "__typename ", "} ") + "}", "text", "TOO_DEEP"),
        post("inline, 600 levels", "{ " + tower(600, "... { ", "__typename ", "} ") + "}", "text", "TOO_DEEP"),
        post(
            "inline, a hundred side by side",
            f"{{ users(first: 1) {{ {times(100, '... on User { id }')} }} }}",
            "answered",
        ),
        post(
            "inline, 101 side by side",
            f"{{ users(first: 1) {{ {times(101, '... on User { id }')} }} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "inline, each with another argument",
            f"{{ {U} {{ {times(90, '... { posts(first: §) { id } }', 1)} }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "inline in inline, each with another argument",
            f"{{ {U} {{ {times(12, '... { posts(first: 1) { ' + times(12, '... { comments(first: §) { id } }', 1) + ' } }')} }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post("on a type that is none", "{ users { ... on Nothing { id } } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post("on a type that cannot be", "{ users { ... on Post { id } } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post("on a scalar", "{ users { ... on String { id } } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "with variables of its own",
            "{ users { ...A } } fragment A($a: Int = 1) on User { posts(first: $a) { id } }",
            "other",
            "GRAPHQL_PARSE_FAILED",
        ),
        post(
            "unfolds to 2,000 fields and more",
            f"{{ {U} {{ {times(29, 'a§: posts(first: 1) { ...A }')} }} }} fragment A on Post {{ {times(99, 'id')} author {{ ...B }} }} "
            f"fragment B on User {{ {times(25, 'posts(first: 1) { id title body createdAt updatedAt version published authorId }')} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
    ],
)


DIRECTIVES = family(
    "directive",
    [
        post("50 that include", f"{{ users(first: 1) {{ {times(50, 'id @include(if: true)')} }} }}", "answered"),
        post(
            "51 that include",
            f"{{ users(first: 1) {{ {times(51, 'id @include(if: true)')} }} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post("51 on one field", f"{{ __typename {times(51, '@include(if: true)')} }}", "prepass", "TOO_COMPLEX"),
        post(
            "50 unknown ones on one field", f"{{ __typename {times(50, '@a§')} }}", "other", "GRAPHQL_VALIDATION_FAILED"
        ),
        post("50 of one unknown name", f"{{ __typename {times(50, '@a')} }}", "other", "GRAPHQL_VALIDATION_FAILED"),
        post("900 unknown ones", f"{{ __typename {times(900, '@aa')} }}", "prepass", "TOO_COMPLEX"),
        post("25,000 unknown ones", f"{{ __typename {'@aa' * 25_000} }}", "text", "TOO_COMPLEX"),
        post("51 on the operation", f"query {times(51, '@a')} {{ __typename }}", "prepass", "TOO_COMPLEX"),
        post(
            "51 on a fragment",
            f"{{ ...A }} fragment A on Query {times(51, '@a')} {{ __typename }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "51 on a spread",
            f"{{ ...A {times(51, '@a')} }} fragment A on Query {{ __typename }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post("51 on an inline fragment", f"{{ ... {times(51, '@a')} {{ __typename }} }}", "prepass", "TOO_COMPLEX"),
        post(
            "51 on a variable",
            f"query($a: Int {times(51, '@a')}) {{ users(first: $a) {{ id }} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "900 on a variable",
            f"query($a: Int {times(900, '@a')}) {{ users(first: $a) {{ id }} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "51 everywhere",
            f"query($a: Int {times(9, '@a')}) {times(9, '@a')} {{ ...A {times(9, '@a')} ... {times(9, '@a')} {{ __typename {times(9, '@a')} }} }} "
            f"fragment A on Query {times(9, '@a')} {{ __typename }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post(
            "on definitions of a schema",
            f"type A {times(900, '@a')} {{ a: Int }} {{ __typename }}",
            "text",
            "TOO_COMPLEX",
        ),
        post("skip and include at once", "{ users(first: 1) { id @skip(if: false) @include(if: true) } }", "answered"),
        post("all is skipped", "{ users(first: 1) @skip(if: true) { id } }", "answered"),
        post(
            "50 by variables",
            f"query($y: Boolean! = true) {{ users(first: 1) {{ {times(50, 'id @include(if: $y)')} }} }}",
            "answered",
        ),
        post(
            "a condition that is no boolean", '{ __typename @skip(if: "true") }', "other", "GRAPHQL_VALIDATION_FAILED"
        ),
        post("a condition that is null", "{ __typename @skip(if: null) }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "100 arguments", f"{{ __typename @include({times(100, 'a§: 1')}) }}", "other", "GRAPHQL_VALIDATION_FAILED"
        ),
        post("400 arguments", f"{{ __typename @include({times(400, 'a§: 1')}) }}", "text", "TOO_COMPLEX"),
        post(
            "100 arguments of one name",
            f"{{ __typename @include({times(100, 'if: true')}) }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "400 arguments of one name", f"{{ __typename @include({times(400, 'if: true')}) }}", "text", "TOO_COMPLEX"
        ),
        post("defer", "{ ... @defer { users { id } } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post("stream", "{ users @stream(initialCount: 0) { id } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "deprecated, where it has no place",
            '{ users { id @deprecated @oneOf @specifiedBy(url: "x") } }',
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
    ],
)


def args(count: int) -> str:
    """One field under one key with arguments that all differ: every pair of them is a conflict."""
    return times(count, "posts(first: §) { id }", 1)


REPEATED = family(
    "repeated field",
    [
        post("id a hundred times", f"{{ users(first: 1) {{ {times(100, 'id')} }} }}", "answered"),
        post("id 101 times", f"{{ users(first: 1) {{ {times(101, 'id')} }} }}", "prepass", "TOO_COMPLEX"),
        post("id 1,900 times", f"{{ users(first: 1) {{ {times(1_900, 'id')} }} }}", "prepass", "TOO_COMPLEX"),
        post(
            "id in 9 sets of 100",
            f"{{ {U} {{ {times(9, 'posts(first: 1) { ' + times(100, 'id') + ' }')} }} }}",
            "answered",
        ),
        post(
            "id in 18 sets of 100",
            f"{{ {U} {{ {times(18, 'posts(first: 1) { ' + times(100, 'id') + ' }')} }} }}",
            "prepass",
            "TOO_COMPLEX",
        ),
        post("99 KB of id", "{ users { " + "id " * 33_000 + "} }", "text", "TOO_COMPLEX"),
        post("400 KB of id", "{ users { " + "id " * 140_000 + "} }", "text", "TOO_COMPLEX"),
        post("4 MB of id", "{ users { " + "id " * 1_400_000 + "} }", "text", "PAYLOAD_TOO_LARGE"),
        post("__typename a hundred times", f"{{ {times(100, '__typename')} }}", "answered"),
        post("__typename 1,900 times", f"{{ {times(1_900, '__typename')} }}", "prepass", "TOO_COMPLEX"),
        post("99 with other arguments", f"{{ {U} {{ {args(99)} }} }}", "other", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "99 root fields with other arguments",
            f"{{ {times(99, 'users(first: §) { id }', 1)} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "190 with other arguments in two sets",
            f"{{ a: {U} {{ {args(95)} }} b: {U} {{ {args(95)} }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "190 small selections",
            f"{{ a: {U} {{ {times(95, 'posts(first: 1) { id }')} }} b: {U} {{ {times(95, 'posts(first: 1) { id }')} }} }}",
            "answered",
        ),
        post(
            "95 with other selections",
            f"{{ {U} {{ {times(12, 'posts(first: 1) { id } posts(first: 1) { title } posts(first: 1) { body id } posts(first: 1) { version } posts(first: 1) { author { id } } posts(first: 1) { author { name } }')} }} }}",
            "answered",
        ),
        post(
            "two sets that meet, 30 by 30",
            f"{{ {U} {{ {times(2, 'posts(first: 1) { ' + times(30, 'author { id posts(first: 1) { id } }') + ' }')} }} }}",
            "answered",
        ),
        post(
            "12 by 12 that meet",
            f"{{ {U} {{ {times(12, 'posts(first: 1) { ' + times(12, 'comments(first: §) { id }', 1) + ' }')} }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "5 by 5 by 5 that meet",
            f"{{ {U} {{ {times(5, 'posts(first: 1) { ' + times(5, 'author { ' + times(5, 'posts(first: 1) { id }') + ' }') + ' }')} }} }}",
            "answered",
        ),
        post(
            "through two fragments, 60 by 60",
            f"{{ {U} {{ ...A ...B }} }} fragment A on User {{ {times(60, 'posts(first: §) { id }', 1)} }} fragment B on User {{ {times(60, 'posts(first: §) { title }', 30)} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "through 24 fragments, each with each",
            f"{{ {U} {{ {times(24, '...F§')} }} }} "
            + times(24, "fragment F§ on User { posts(first: 1) { id author { id name } } ... { name } }"),
            "answered",
        ),
        post(
            "nested, two by two, 9 levels",
            "{ "
            + chain(
                [U], tower(4, "posts(first: 1) { id author { ", "id ", "} } posts(first: 1) { title author { name } } ")
            )
            + " }",
            "answered",
        ),
        post("with other types under one key", "{ users { a: id a: version } }", "other", "GRAPHQL_VALIDATION_FAILED"),
    ],
)

CASES: dict[str, Case] = ALIASES | FRAGMENTS | DIRECTIVES | REPEATED
