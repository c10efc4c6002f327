"""What stands before graphql-core's validation, and in the place of a part of it, changes nothing of what a document means.

Random documents over the schema of a role: merged or not, they give the same Asks; fields that cannot go together are found
exactly where graphql-core finds them; and a document is sound for us if and only if it is for all of graphql-core's rules.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    Node,
    OperationDefinitionNode,
    OperationType,
    OverlappingFieldsCanBeMergedRule,
    validate,
)
from graphql import parse as parse_by_core
from graphql.validation import specified_rules
from msgspec.structs import replace

from diptych.api.graphql import document as documents
from diptych.api.graphql import merge as merging
from diptych.api.graphql import rules
from diptych.api.graphql.collect import collect, fragments_of
from diptych.api.graphql.document import check_document, read_document
from diptych.api.graphql.merge import conflicts, merge_selections
from diptych.api.graphql.response_shape import shape_conflicts
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.tokens import parse_tokens
from diptych.api.graphql.translate import translate
from diptych.ask.measures import RequestMeasures
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from diptych.model.view import View
from diptych.policy.limits import Checks
from tests.contract.guard.conftest import Pressed
from tests.support.cases import cases
from tests.support.drawing import Fitting, spoiled
from tests.support.effort import scaled
from tests.unit.api.graphql.test_measure import ANY

DOCUMENTS = scaled(450)
KINDS = (OperationType.QUERY, OperationType.QUERY, OperationType.MUTATION, OperationType.SUBSCRIPTION)


@dataclass(frozen=True)
class Scene:
    view: View
    schema: GraphQLSchema


@pytest.fixture(scope="module")
def scene() -> Scene:
    viewer = model.viewer(frozenset({"admin"}), "01900000-0000-7000-8000-0000000000a1")
    view = model.view(model.signature(viewer))
    return Scene(view, build_schema(view))


def drawn(scene: Scene, seed: str, count: int = DOCUMENTS) -> Iterator[str]:
    random = Random(seed)
    draw = Fitting(random, scene.schema)
    for _ in range(count):
        yield draw.document(random.choice(KINDS))


def values_for(text: str) -> dict[str, Any]:
    """A value for each variable that a document declares."""
    (operation,) = (node for node in parse_tokens(text).definitions if isinstance(node, OperationDefinitionNode))
    return {node.variable.name.value: _value(str_of(node.type)) for node in operation.variable_definitions or ()}


def str_of(node: Node) -> str:
    inner = getattr(node, "type", None)
    if inner is None:
        return str(node.name.value)  # type: ignore[attr-defined]  # all of these nodes have names
    return f"[{str_of(inner)}]" if node.kind == "list_type" else str_of(inner)


def _value(type_name: str) -> Any:
    if type_name.startswith("["):
        return []
    return {"Boolean": True, "Int": 3, "Float": 1.5}.get(
        type_name, {} if type_name.endswith(("Where", "Filter", "Having")) else "x"
    )


# merged and not merged


def meaning(document: DocumentNode, text: str, scene: Scene) -> object:
    """What a document asks for: its Asks, or what is wrong with it."""
    (operation,) = (node for node in document.definitions if isinstance(node, OperationDefinitionNode))
    try:
        found = translate(document, operation, values_for(text), scene.view)
    except Refusal as refusal:
        return refusal.code, refusal.message, refusal.faults
    writes = [wish.ask for wish in (*found.parts, *found.calls)]
    return found.roots, found.wish.asks, found.wish.slots, writes, found.watch and found.watch.ask


def differs(text: str, scene: Scene) -> bool:
    document = parse_tokens(text)
    return meaning(merging.merge_selections(document), text, scene) != meaning(document, text, scene)


def sound(texts: Iterator[str], scene: Scene) -> Iterator[str]:
    return (text for text in texts if not validate(scene.schema, parse_by_core(text)))


@pytest.mark.slow
def test_merged_and_not_merged_ask_for_the_same(scene: Scene) -> None:
    seen = changed = 0
    for text in sound(drawn(scene, "merge"), scene):
        assert not differs(text, scene), text
        document = parse_tokens(text)
        seen += 1
        changed += merge_selections(document) is not document
    assert seen > DOCUMENTS // 4 and changed > seen // 10, "there was something to merge"


@cases(
    ("text", "merged"),
    [
        ("{ a a }", 1),
        ("{ a b a }", 2),
        ("{ a { b } a { c } }", 3),
        ("{ a: b a: b }", 1),
        ("{ a: b b }", 2),
        ("{ a(c: 1) a(c: 1) }", 1),
        ("{ a @skip(if: true) a }", 2),
        ("{ a @skip(if: $v) a @skip(if: $v) }", 1),
        ("{ a @skip(if: $v) a @skip(if: $w) }", 2),
        ("{ a @skip(if: true) a @include(if: true) }", 2),
        ("{ ...F ...F } fragment F on T { a a }", 2),
        ("{ ...F ...F @skip(if: true) } fragment F on T { a }", 3),
        ("{ ... on A { b } ... on A { b c } }", 3),
        ("{ ... on A { b } ... on B { b } }", 4),
        ("{ ... { b } ... { b } }", 2),
        ("{ ... { b } c ... { b } }", 5),
        ('{ a(b: "x") a(b: """x""") }', 2),
        ("{ a(b: [1, 2]) a(b: [1 2]) a(b: [2, 1]) }", 2),
        ("{ a { b { c } } a { b { d } b { c } } }", 4),
    ],
)
def test_what_is_merged_and_what_is_not(text: str, merged: int) -> None:
    assert selections_of(merge_selections(parse_tokens(text))) == merged


def selections_of(node: Any) -> int:
    if isinstance(node, DocumentNode):
        return sum(selections_of(each) for each in node.definitions)
    inner = getattr(node, "selection_set", None)
    return sum(1 + selections_of(each) for each in inner.selections) if inner else 0


@cases(
    ("text", "keys"),
    [
        ("{ a b { c } a d b { e c f } }", "abcefd"),
        ("{ a { b } c a { d } }", "abdc"),
        ("{ a { b } a @include(if: true) { c } a { d } }", "abcd"),
        ("{ a { b } ...F a { d } } fragment F on T { a { c } }", "abcd"),
        ("{ a { b } ... { a { c } } a { d } }", "abcd"),
        ("{ a { b } ...F a { d } ...F a { e } } fragment F on T { a { c } }", "abcde"),
        ("{ ... { a } b ... { c } }", "abc"),
        ("{ ... { a } ... { b } c ... { d a } ... { e } }", "abcde"),
        ("{ ... { a @skip(if: true) } b ... { a } }", "ba"),
        ("{ ... on T { a } ... { b } ... on T { c } }", "abc"),
        ("{ ...F b ...F } fragment F on T { c a }", "cab"),
    ],
)
def test_what_is_merged_keeps_the_order_of_the_answer(text: str, keys: str) -> None:
    document = merge_selections(parse_tokens(text))
    operation = next(node for node in document.definitions if isinstance(node, OperationDefinitionNode))
    assert "".join(keys_of([operation.selection_set], document)) == keys


def keys_of(sets: list[Any], document: DocumentNode) -> Iterator[str]:
    """All keys of an answer, from the outermost in."""
    for key, nodes in collect(sets, fragments_of(document), {}).items():
        yield key
        if nodes[0].selection_set is not None:
            yield from keys_of([node.selection_set for node in nodes], document)


# what cannot go together


def by_core(text: str, schema: GraphQLSchema) -> bool:
    """Does graphql-core find fields that cannot be merged?"""
    return bool(validate(schema, parse_by_core(text), [OverlappingFieldsCanBeMergedRule]))


def disagrees(text: str, scene: Scene) -> bool:
    document = merging.merge_selections(parse_tokens(text))
    (operation,) = (node for node in document.definitions if isinstance(node, OperationDefinitionNode))
    found = bool(merging.conflicts(document)) or any(shape_conflicts(operation, fragments_of(document), scene.schema))
    return found != by_core(text, scene.schema)


def test_fields_that_cannot_go_together_are_those_that_graphql_core_finds(scene: Scene) -> None:
    found = 0
    for text in drawn(scene, "cannot go together"):
        assert not disagrees(text, scene), text
        found += by_core(text, scene.schema)
    assert DOCUMENTS // 10 < found < DOCUMENTS, "some have them, and some have none"


@cases(
    "text",
    [
        "{ a: users { id } a: posts { id } }",
        "{ users(first: 1) { id } users(first: 2) { id } }",
        "{ users { a: id a: name } }",
        "{ users { ...F name: id } } fragment F on User { name }",
        "{ users { posts { id } ... on User { posts(first: 1) { id } } } }",
        "{ users { posts { a: id } } ...F } fragment F on Query { users { posts { a: title } } }",
        "query($v: Int, $w: Int) { users(first: $v) { id } users(first: $w) { id } }",
        "{ users(first: 1, offset: 2) { id } users(offset: 2) { id } }",
        '{ users(where: {name: {eq: "x"}}) { id } users(where: {name: {eq: "y"}}) { id } }',
    ],
)
def test_a_conflict_is_told_with_both_places(text: str, scene: Scene) -> None:
    (error, *_) = conflicts(merge_selections(parse_tokens(text)))
    assert by_core(text, scene.schema)
    assert "conflict because" in error.message and "Use different aliases" in error.message
    assert len(error.locations or ()) == 2


@pytest.mark.parametrize(
    "text",
    [
        "{ users(first: 1, offset: 2) { id } users(offset: 2, first: 1) { name } }",
        "{ users { id } users { name } ...F } fragment F on Query { users { id } }",
        "{ users { a: id } posts { a: title } }",
        "{ users @skip(if: true) { id } users { id } }",
    ],
)
def test_what_goes_together_is_no_conflict(text: str, scene: Scene) -> None:
    assert not conflicts(merge_selections(parse_tokens(text)))
    assert not by_core(text, scene.schema)


def test_conflicts_are_told_up_to_a_number() -> None:
    parts = " ".join(f"a{n}: id a{n}: name" for n in range(60))
    assert len(conflicts(parse_tokens(f"{{ {parts} }}"))) == 20


# what it costs at least


@pytest.mark.slow
def test_a_text_costs_no_more_than_its_document(scene: Scene, serving: Pressed) -> None:
    """Of whatever is priced by its text alone, and could be refused for that."""
    shown: list[RequestMeasures] = []
    service = serving(
        lambda asked, limits: shown.append(replace(asked)),
        model=model,
        max_complexity=10**9,
        max_aliases=10**3,
        max_selections=10**3,
    )
    token, compared = service.token("01900000-0000-7000-8000-0000000000a1", "admin"), []
    random = Random("price")
    draw = Fitting(random, scene.schema)
    for _ in range(
        2 * DOCUMENTS
    ):  # many are refused for what is not drawn to fit, such as fields that are no keys of groups
        text = re.sub(r"first: \d", lambda found: f"first: {random.randint(1, 100)}", draw.document())
        text = re.sub(r"(after|before): \S+?([,)])", r"\1: null\2", text)  # these would be of other lists
        shown.clear()
        answer = service.query(text, values_for(text), token=token)
        if answer.status == 200:
            compared.append((shown[-1].least, shown[-1].price, text))
    assert all(least <= price for least, price, _ in compared), max(compared)
    assert len(compared) > DOCUMENTS // 2 and max(compared)[0] > 50


# sound or not

ALONE: dict[str, list[str]] = {
    "ExecutableDefinitionsRule": ["{ users { id } } type A { b: Int }", "{ users { id } } extend type User { b: Int }"],
    "KnownOperationTypesRule": ["mutation { __typename }"],
    "UniqueOperationNamesRule": ["query A { users { id } } query A { posts { id } }"],
    "LoneAnonymousOperationRule": ["query A { users { id } } { posts { id } }"],
    "SingleFieldSubscriptionsRule": [
        "subscription { userChanged { kind } postChanged { kind } }",
        "subscription { __typename }",
        "subscription { userChanged { kind } ...F } fragment F on Subscription { a: userChanged { kind } }",
    ],
    "KnownTypeNamesRule": ["{ users { ... on Nobody { id } } }", "query($v: Nothing) { users(first: $v) { id } }"],
    "FragmentsOnCompositeTypesRule": [
        "{ users { ... on Int { id } } }",
        "{ users { ...F } } fragment F on OrderStatus { id }",
    ],
    "VariablesAreInputTypesRule": ["query($v: User) { users(first: $v) { id } }"],
    "ScalarLeafsRule": ["{ users }", "{ users { name { id } } }", "{ users { posts } }"],
    "FieldsOnCorrectTypeRule": [
        "{ nothing }",
        "{ users { colour } }",
        "{ users { ...F } } fragment F on User { colour }",
    ],
    "UniqueFragmentNamesRule": ["{ users { ...F } } fragment F on User { id } fragment F on User { name }"],
    "KnownFragmentNamesRule": ["{ users { ...F } }"],
    "NoUnusedFragmentsRule": ["{ users { id } } fragment F on User { id }"],
    "PossibleFragmentSpreadsRule": ["{ users { ... on Post { id } } }", "{ users { ...F } } fragment F on Post { id }"],
    "NoFragmentCyclesRule": [
        "{ users { ...F } } fragment F on User { posts { author { ...F } } }",
        "{ users { ...F } } fragment F on User { id ...G } fragment G on User { ...F }",
    ],
    "UniqueVariableNamesRule": ["query($v: Int, $v: Int) { users(first: $v) { id } }"],
    "NoUndefinedVariablesRule": [
        "{ users(first: $v) { id } }",
        "{ users { ...F } } fragment F on User { posts(first: $v) { id } }",
    ],
    "NoUnusedVariablesRule": ["query($v: Int) { users { id } }"],
    "KnownDirectivesRule": [
        "{ users @nothing { id } }",
        "query @skip(if: true) { users { id } }",
        "{ users @defer { id } }",
        "query($v: Int @skip(if: true)) { users(first: $v) { id } }",
    ],
    "UniqueDirectivesPerLocationRule": ["{ users @skip(if: false) @skip(if: false) { id } }"],
    "KnownArgumentNamesRule": [
        "{ users(colour: 1) { id } }",
        "{ users { name(first: 1) } }",
        "{ users @skip(if: true, unless: true) { id } }",
    ],
    "UniqueArgumentNamesRule": ["{ users(first: 1, first: 1) { id } }", "{ users @skip(if: true, if: true) { id } }"],
    "ValuesOfCorrectTypeRule": [
        '{ users(first: "x") { id } }',
        "{ users(where: {name: {eq: 1}}) { id } }",
        "{ users(where: {colour: 1}) { id } }",
        'query($v: Int = "x") { users(first: $v) { id } }',
        "{ users(orderBy: [{name: UP}]) { id } }",
        "{ users @skip(if: 1) { id } }",
    ],
    "ProvidedRequiredArgumentsRule": ["{ user { id } }", "{ users @skip { id } }", "mutation { deleteUser { id } }"],
    "VariablesInAllowedPositionRule": [
        "query($v: String) { users(first: $v) { id } }",
        "query($v: ID) { user(id: $v) { id } }",
        "query($v: Boolean) { users @skip(if: $v) { id } }",
    ],
    "OverlappingFieldsCanBeMergedRule": [
        "{ users { a: id a: name } }",
        "{ users(first: 1) { id } users(first: 2) { id } }",
    ],
    "UniqueInputFieldNamesRule": ['{ users(where: {name: {eq: "x", eq: "x"}}) { id } }'],
    "MaxIntrospectionDepthRule": ["{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }"],
}
"""Documents to which one rule alone objects."""
TOGETHER = ("VariablesAreInputTypesRule",)
"""A rule that never objects alone: no place takes a variable of such a type."""
NOWHERE = (
    "DeferStreamDirectiveOnRootField",
    "DeferStreamDirectiveOnValidOperationsRule",
    "DeferStreamDirectiveLabel",
    "StreamDirectiveOnListField",
)
"""Rules about directives that no schema here has: another rule objects to these."""


def schema_for(rule: str, scene: Scene) -> GraphQLSchema:
    """Those who may change nothing have no mutations."""
    return (
        build_schema(model.view(model.signature(model.anonymous)))
        if rule == "KnownOperationTypesRule"
        else scene.schema
    )


def is_sound(text: str, schema: GraphQLSchema) -> bool:
    """Is it, for our part of the validation and what stands before it?"""
    first = next(
        (
            node.name.value
            for node in parse_tokens(text).definitions
            if isinstance(node, OperationDefinitionNode) and node.name
        ),
        None,
    )
    try:
        node, operation = read_document(text, first, RequestMeasures("graphql", model.anonymous), Checks(ANY))
        check_document(node, operation, schema)
    except Refusal as refusal:
        assert refusal.code is Code.GRAPHQL_VALIDATION_FAILED, refusal
        return False
    return True


@cases("rule", ALONE)
def test_what_one_rule_of_graphql_core_objects_to_is_refused(rule: str, scene: Scene) -> None:
    schema = schema_for(rule, scene)
    (alone,) = (each for each in specified_rules if each.__name__ == rule)
    for text in ALONE[rule]:
        document = parse_by_core(text)
        assert validate(schema, document, [alone]), f"{rule} does not object to {text}"
        others = [each for each in specified_rules if each is not alone]
        assert rule in TOGETHER or not validate(schema, document, others), f"others object, too, to {text}"
        assert not is_sound(text, schema), text


def test_there_is_no_rule_of_which_nothing_is_known() -> None:
    """A newer graphql-core may have more of them."""
    assert {rule.__name__ for rule in specified_rules} == {*ALONE, *NOWHERE}


def verdicts_differ(text: str, scene: Scene) -> bool:
    try:
        document = parse_by_core(text, allow_empty_selection_sets=False)
    except GraphQLError:
        return False
    operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    if len(operations) != 1:
        return False
    return is_sound(text, scene.schema) == bool(validate(scene.schema, document))


@pytest.mark.slow
def test_all_rules_of_graphql_core_say_the_same_of_a_document(scene: Scene) -> None:
    random = Random("slips")
    for text in drawn(scene, "sound"):
        assert not verdicts_differ(text, scene), text
        for _ in range(3):
            slip = spoiled(random, text)
            assert not verdicts_differ(slip, scene), slip


# a fault must be seen


def without(key: str) -> Callable[..., Any]:
    """What a node says, but for a part of a field."""
    same = merging._same

    def forgets(node: Node, *, inside: bool = True) -> Any:
        without: dict[str, Any] = {key: ()}
        return same(dataclasses.replace(node, **without) if isinstance(node, FieldNode) else node, inside=inside)

    return forgets


def test_a_merge_that_forgets_directives_is_seen(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_same", without("directives"))
    assert any(differs(text, scene) for text in sound(drawn(scene, "merge"), scene))


def test_a_merge_that_forgets_arguments_is_seen(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_same", without("arguments"))
    assert any(disagrees(text, scene) for text in drawn(scene, "cannot go together"))


ELSEWHERE = (
    *TOGETHER,
    "OverlappingFieldsCanBeMergedRule",
    "KnownFragmentNamesRule",
    "NoUnusedFragmentsRule",
    "NoFragmentCyclesRule",
    "UniqueOperationNamesRule",
)
"""Rules besides which something else refuses the same."""


@pytest.mark.parametrize("rule", [rule for rule in ALONE if rule not in ELSEWHERE])
def test_a_rule_that_is_left_out_is_missed(rule: str, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_NEVER", (*rules._NEVER, rule))
    rules._rules.cache_clear()
    try:
        assert any(is_sound(text, schema_for(rule, scene)) for text in ALONE[rule])
    finally:
        rules._rules.cache_clear()


@pytest.mark.parametrize(
    ("function", "rule"), [("conflicts", "OverlappingFieldsCanBeMergedRule"), ("_check_fragments", "")]
)
def test_what_stands_in_the_place_of_a_rule_is_missed_without_it(
    function: str, rule: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, function, lambda *given: [])
    if rule:
        assert is_sound(ALONE[rule][0], scene.schema)
    else:  # the rules of graphql-core are there for it too: what it does is to be quick
        assert not is_sound(ALONE["NoUnusedFragmentsRule"][0], scene.schema)
