"""Introspection: what tools send must pass, and what goes round in circles or asks for everything many times must not."""

from __future__ import annotations

from graphql import get_introspection_query

from tests.proof.attacks.case import Case, by_get, chain, family, post, times

FULL = (
    "fragment Full on __Type { kind name description fields(includeDeprecated: true) { name args { ...Input } type { ...Ref } } "
    "inputFields { ...Input } enumValues { name } possibleTypes { ...Ref } } fragment Input on __InputValue { name type { ...Ref } defaultValue } "
    "fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }"
)
GRAPHIQL_OLD = """query IntrospectionQuery { __schema { queryType { name } mutationType { name } subscriptionType { name }
  types { ...FullType } directives { name description locations args { ...InputValue } } } }
fragment FullType on __Type { kind name description fields(includeDeprecated: true) { name description args { ...InputValue }
  type { ...TypeRef } isDeprecated deprecationReason } inputFields { ...InputValue } interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
  ofType { kind name ofType { kind name } } } } } } } }"""
"""As graphql-js 0.13 to 14 print it, and GraphiQL, Altair and Apollo's tools sent it for years."""


def by_types(levels: int) -> str:
    """Types → fields → their types → fields …"""
    return f"{{ __schema {{ types {{ {chain(['fields', 'type'] * levels, 'name')} }} }} }}"


def of_types(levels: int) -> str:
    return f"{{ __schema {{ types {{ fields {{ type {{ {chain(['ofType'] * levels, 'kind name')} }} }} }} }} }}"


TOOLS = family(
    "introspection of tools",
    [
        post("graphql-js 14 and GraphiQL of its time", GRAPHIQL_OLD, "answered", operation="IntrospectionQuery"),
        post("graphql-js 15", get_introspection_query(), "answered", operation="IntrospectionQuery"),
        post(
            "graphql-js 16, as GraphiQL sends it",
            get_introspection_query(
                descriptions=True,
                specified_by_url=True,
                directive_is_repeatable=True,
                schema_description=True,
                input_value_deprecation=True,
            ),
            "answered",
            operation="IntrospectionQuery",
        ),
        post(
            "graphql-js 16 and 17, all options",
            get_introspection_query(
                descriptions=True,
                specified_by_url=True,
                directive_is_repeatable=True,
                schema_description=True,
                input_value_deprecation=True,
                one_of=True,
            ),
            "answered",
            operation="IntrospectionQuery",
        ),
        post(
            "graphql-codegen",
            get_introspection_query(
                descriptions=True,
                specified_by_url=False,
                directive_is_repeatable=True,
                schema_description=False,
                input_value_deprecation=True,
            ),
            "answered",
        ),
        post("Apollo, without descriptions", get_introspection_query(descriptions=False), "answered"),
        post("for an admin", get_introspection_query(), "answered").by("admin"),
        by_get("by GET", get_introspection_query(), "answered"),
        post(
            "which fields a type has",
            '{ __type(name: "User") { name fields { name type { name kind ofType { name kind } } } } }',
            "answered",
        ),
        post("is anybody there", "{ __typename }", "answered"),
        post(
            "the types of the answers",
            "{ users(first: 1) { __typename posts(first: 1) { __typename } } __schema { queryType { name } } }",
            "answered",
        ),
    ],
)


CIRCLES = family(
    "introspection",
    [
        post("fields of types of fields, 3 times", by_types(3), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("fields of types of fields, 6 times", by_types(6), "text", "TOO_COMPLEX"),
        post("fields of types of fields, 25 times", by_types(25), "text", "TOO_COMPLEX"),
        post(
            "in circles by fragments",
            "{ __schema { types { ...A } } } fragment A on __Type { fields { type { ...B } } } "
            "fragment B on __Type { fields { type { ...C } } } fragment C on __Type { fields { type { fields { type { name } } } } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "in a fragment that holds itself",
            "{ __schema { types { ...A } } } fragment A on __Type { fields { type { ...A } } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "possible types of interfaces of types",
            "{ __schema { types { " + chain(["possibleTypes", "interfaces"] * 4, "name") + " } } }",
            "text",
            "TOO_COMPLEX",
        ),
        post(
            "types of arguments of fields",
            "{ __schema { types { " + chain(["inputFields", "type"] * 6, "name") + " } } }",
            "text",
            "TOO_COMPLEX",
        ),
        post("50 levels of ofType", of_types(50), "answered"),
        post("65 levels of ofType", of_types(65), "text", "TOO_DEEP"),
        post(
            "everything 20 times",
            "{ " + times(20, "a§: __schema { types { ...Full } }") + " } " + FULL,
            "other",
            "TOO_COMPLEX",
        ),
        post("everything twice", "{ " + times(2, "a§: __schema { types { ...Full } }") + " } " + FULL, "answered"),
        post(
            "the types 20 times",
            "{ __schema { " + times(20, "a§: types { ...Full }") + " } } " + FULL,
            "other",
            "TOO_COMPLEX",
        ),
        post(
            "the fields 20 times",
            "{ __schema { types { " + times(20, "a§: fields { name args { name type { name } } }") + " } } }",
            "other",
            "TOO_COMPLEX",
        ),
        post(
            "one type 20 times",
            "{ "
            + times(20, '__type(name: "User") { a§: fields { name args { name type { name fields { name } } } } }')
            + " }",
            "answered",
        ),
        post("one type under 20 keys", "{ " + times(20, 'a§: __type(name: "User") { name }') + " }", "answered"),
        post("a type of a name that is no text", "{ __type(name: 1) { name } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post("a type of a name of 4 KB", '{ __type(name: "' + "x" * 4_000 + '") { name } }', "answered"),
        post("in a mutation", "mutation { __schema { types { name } } }", "other", "GRAPHQL_VALIDATION_FAILED"),
        post("of a secret", '{ __type(name: "Order") { fields { name } } }', "answered"),
        post("101 times the name", "{ __schema { " + times(101, "description") + " } }", "prepass", "TOO_COMPLEX"),
        post(
            "31 aliases of the name",
            "{ __schema { types { " + times(31, "a§: name") + " } } }",
            "prepass",
            "TOO_COMPLEX",
        ),
    ],
)

CASES: dict[str, Case] = TOOLS | CIRCLES
