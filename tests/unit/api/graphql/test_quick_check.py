"""The quick check of documents: what it accepts is valid, for graphql-core too; and it accepts what is ordinary."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from graphql import GraphQLError, GraphQLSchema, parse
from graphql.validation import specified_rules, validate

from bench.cases import DOCUMENTS
from diptych.api.graphql import quick_check
from diptych.api.graphql.quick_check import is_surely_valid
from diptych.api.graphql.schema import build_schema
from diptych.demo.model import model as shop
from tests.contract.http import shelf
from tests.support.effort import scaled

ROUNDS = scaled(20_000, 700)
RULES = [rule for rule in specified_rules if not rule.__name__.startswith("OverlappingFields")]
SHOP = build_schema(shop.view(shop.signature(shop.viewer_as("admin"))))
SHELF = build_schema(shelf.model.view(shelf.model.signature(shelf.model.anonymous)))
ORDINARY = [
    *((SHOP, text) for text in DOCUMENTS.values()),
    (
        SHOP,
        '{ user(id: "x") { ...U } } fragment U on User { name ... on User { id } ... @include(if: true) { __typename } }',
    ),
    (SHOP, "query Q($n: Int = 5, $w: PostWhere) { posts(first: $n, where: $w, orderBy: [{title: ASC}]) { title } }"),
    (
        SHOP,
        "query($a: Boolean!, $t: String!) { posts(where: {title: {eq: $t}}) @skip(if: $a) { id @include(if: $a) } }",
    ),
    (
        SHOP,
        "query A { users { name } } query B($id: ID!) { user(id: $id) { ...F } } fragment F on User { posts { id } }",
    ),
    (
        SHOP,
        'mutation($n: String!) { a: createUser(input: {name: $n, email: "a@b.c"}) { id } deletePost(id: 5) { title } }',
    ),
    (SHOP, 'mutation { createOrder(input: {customerId: "x", total: "5.00", status: pending, note: null}) { total } }'),
    (SHOP, "subscription($id: ID) { postChanged(id: $id, kinds: [CREATED]) { kind post { title } } }"),
    (SHOP, "{ usersConnection(last: 3, after: null) { nodes { name } pageInfo { endCursor } totalCount } }"),
    (
        SHOP,
        'query($i: [ID!]!) { node(id: "a") { id __typename } nodes(ids: $i) { ... on Post { title } ...F } } fragment F on Node { id }',
    ),
    (SHOP, '{ nodes(ids: ["a", "b"]) { ...U ... on Post { x: title } } } fragment U on User { x: name posts { id } }'),
    (
        SHELF,
        '{ items(where: {number: {in: [1, 2]}, big: {gt: "5"}, price: {eq: "1.5"}, ratio: {lt: 2}, flag: {eq: true}}) { id } }',
    ),
    (
        SHELF,
        '{ items(where: {and: [{day: {eq: "2026-01-31"}}, {mood: {eq: calm}}], not: {text: {contains: ""}}}) { id data } }',
    ),
    (
        SHELF,
        "query($i: [Int!]!, $d: DateTime!) { items(where: {number: {in: $i}, moment: {lt: $d}}) { children { id } } }",
    ),
]
WRONG = [
    "{ users { ...A } } fragment A on User { name ...A }",
    "{ users { ...A } } fragment A on User { name ...B } fragment B on User { id posts { author { ...A } } }",
    "{ node { id } }",
    '{ node(id: "a") { name } }',
    '{ node(id: "a") { ... on User { nope } } }',
    '{ node(id: "a") { ... on PageInfo { hasNextPage } } }',
    "{ nodes(ids: [null]) { id } }",
    '{ user(id: "a") { ... on Post { id } } }',
    '{ node(id: "a") { ...U } } fragment U on UserConnection { totalCount }',
    "{ nope }",
    "{ users }",
    "{ users { name { x } } }",
    "{ users { posts } }",
    "{ user { name } }",
    "{ user(id: null) { name } }",
    '{ user(id: "a", id: "b") { name } }',
    '{ user(id: "a", x: 1) { name } }',
    "{ user(id: $id) { name } }",
    "query($id: ID) { user(id: $id) { name } }",
    "query($id: ID = null) { user(id: $id) { name } }",
    "query($f: Boolean) { users @skip(if: $f) { name } }",
    "query($id: String!) { user(id: $id) { name } }",
    "query($id: ID!) { users { name } }",
    "query($id: ID!, $id: ID!) { user(id: $id) { name } }",
    "query($id: User) { users { name } }",
    "query($id: Nope) { users { name } }",
    'query($n: Int = "x") { users(first: $n) { name } }',
    '{ users(first: "1") { name } }',
    "{ users(first: 99999999999) { name } }",
    "{ users(first: 1.5) { name } }",
    "{ users(where: {name: {eq: 5}}) { name } }",
    '{ users(where: {name: {eq: "a", eq: "b"}}) { name } }',
    '{ users(where: {nope: {eq: "a"}}) { name } }',
    "{ users(where: 5) { name } }",
    "{ users(orderBy: {name: UP}) { name } }",
    "{ users(orderBy: {name: ASC, id: ASC}) { name } }",
    "{ users(orderBy: {}) { name } }",
    "{ users(orderBy: {name: null}) { name } }",
    '{ users(orderBy: {name: "ASC"}) { name } }',
    '{ orders(where: {createdAt: {lt: "x"}}) { id } }',
    '{ orders(where: {total: {lt: "x"}}) { id } }',
    "{ users @nope { name } }",
    "{ users @include { name } }",
    "{ users @include(if: 5) { name } }",
    "{ users @include(if: true) @include(if: false) { name } }",
    "query @skip(if: true) { users { name } }",
    "query($n: Int @skip(if: true)) { users(first: $n) { name } }",
    "{ users { ... on Post { id } } }",
    "{ users { ...F } } fragment F on Post { id }",
    "{ users { ...F } } fragment F on Nope { id }",
    "{ users { ...F } } fragment F on User { id } fragment F on User { name }",
    "{ users { ...F } } fragment F on User { id } fragment G on User { name }",
    "{ users { ...F } } fragment F on User { posts(first: $n) { id } }",
    "{ users { ...F } } fragment F on User @skip(if: true) { id }",
    "{ a: users { id } } { users { id } }",
    "query A { users { id } } query A { users { id } }",
    "query A { users { id } } { users { id } }",
    "subscription { postChanged { kind } userChanged { kind } }",
    "subscription { __typename }",
    "subscription { postChanged @skip(if: true) { kind } }",
    "subscription { ... { postChanged { kind } userChanged { kind } } }",
    "mutation { createUser(input: {}) { id } }",
    'mutation { createUser(input: {name: null, email: "x"}) { id } }',
    "{ users { name } } type T { a: Int }",
    "{ users { __typename(x: 1) } }",
    "{ users { __typename { x } } }",
    "query($w: UserWhere) { posts(where: $w) { id } }",
    "query($w: [Int]) { posts(first: $w) { id } }",
    "query($t: String) { posts(where: {title: {in: [$t]}}) { id } }",
]
WORDS = re.compile(r'"[^"]*"|\w+|\.\.\.|\S')
PIECES = [
    "$n",
    "$x",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ":",
    "!",
    "null",
    "true",
    "5",
    '"x"',
    "@skip(if: true)",
    "@include",
    "id",
    "__typename",
]
PIECES += [
    "... F",
    "fragment F on User { id }",
    "query",
    "ASC",
    "title",
    "name",
    "where: {}",
    "first: 3",
    "= 5",
    "on User",
    "Int",
    "1.5",
]


def is_valid(text: str, schema: GraphQLSchema) -> bool | None:
    """Is it valid for graphql-core? None if it is no document."""
    try:
        return not validate(schema, parse(text), RULES)
    except GraphQLError:
        return None


@pytest.mark.parametrize(("schema", "text"), ORDINARY)
def test_ordinary_documents_are_accepted(schema: GraphQLSchema, text: str) -> None:
    assert is_valid(text, schema)
    assert is_surely_valid(parse(text), schema)


@pytest.mark.parametrize("text", WRONG)
def test_invalid_documents_are_not(text: str) -> None:
    assert is_valid(text, SHOP) is False
    assert not is_surely_valid(parse(text), SHOP)


def kind(word: str) -> str:
    return "name" if word[0].isalpha() else "literal" if word[0] in '"123456789' else word


def spoiled(random: Random) -> tuple[GraphQLSchema, str]:
    """An ordinary document with some of its words exchanged, left out, or put in."""
    schema, text = random.choice(ORDINARY)
    other = WORDS.findall(random.choice(ORDINARY)[1])
    words = WORDS.findall(text)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(words))
        pieces = [random.choice(PIECES), random.choice(words)]
        pieces += 4 * [random.choice([word for word in [*words, *other, *PIECES] if kind(word) == kind(words[at])])]
        words[at : at + (random.random() < 0.9)] = [] if random.random() < 0.2 else [random.choice(pieces)]
    return schema, " ".join(words)


def storm() -> int:
    """Compares both on random documents; returns how many invalid ones there were."""
    random, invalid, accepted, valid = Random(ROUNDS), 0, 0, 0
    for _ in range(ROUNDS):
        schema, text = spoiled(random)
        if (is_right := is_valid(text, schema)) is None:
            continue
        is_sure = is_surely_valid(parse(text), schema)
        assert is_right or not is_sure, text
        invalid += not is_right
        valid += is_right
        accepted += is_sure
    assert accepted > valid // 2
    return invalid


@pytest.mark.slow
def test_nothing_that_is_accepted_is_invalid() -> None:
    assert storm() > ROUNDS // 10


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("_is_subtype", lambda given, expected: given is not None),
        ("_is_literal", lambda node, expected: True),
        ("_Walk._conditions", lambda walk, directives: None),
        ("_Walk._spread", lambda walk, name, parent: walk.spread.add(name)),
    ],
)
def test_a_fault_in_the_check_is_seen(part: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{quick_check.__name__}.{part}", wrong)
    with pytest.raises(AssertionError):
        storm()
