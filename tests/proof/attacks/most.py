"""As much as is allowed of everything that is counted: what is refused last, costs most."""

from __future__ import annotations

from tests.contract.http.data import ANN
from tests.proof.attacks.bombs import U
from tests.proof.attacks.case import Case, family, post, times

POST = "id title body version createdAt updatedAt published authorId"
USER = "id name version createdAt updatedAt"
DEAR = (
    f"a§: users(first: 100) {{ {USER} posts(first: 50) {{ {POST} author {{ id name version createdAt }} comments(first: 9) "
    "{ id body version createdAt postId author { id name posts(first: 2) { id title body } } } } }"
)
FILTERED = (
    'a§: users(first: 100, where: {or: [{name: {eq: "x"}}, {posts: {some: {title: {contains: "y"}}}}], not: {id: {in: ["1", "2"]}}}, '
    'orderBy: [{name: ASC}, {id: DESC}]) { id posts(first: 50, where: {title: {startsWith: "z"}}, orderBy: [{title: ASC}]) { id title } }'
)
CHANGED = f'a§: updateUser(id: "{ANN}", patch: {{name: "x"}}) {{ id posts(first: 100) {{ id comments(first: 50) {{ id body }} }} }}'
UNKNOWN = "a§: users(first: 1) { " + times(90, "nope§x") + " }"


def spread(count: int, first: str) -> str:
    """Fragments that all meet in one selection."""
    parts = times(count, f"fragment F§ on User {{ id name posts(first: {first}) {{ id title author {{ id }} }} }}", 1)
    return f"{{ {U} {{ {times(count, '...F§', 1)} }} }} {parts}"


CASES: dict[str, Case] = family(
    "the most that is allowed",
    [
        post("too dear", f"{{ {times(19, DEAR)} }}", "other", "TOO_COMPLEX"),
        post(
            "too dear by variables",
            f"query($n: Int = 100) {{ {times(19, DEAR.replace('first: 100', 'first: $n'))} }}",
            "other",
            "TOO_COMPLEX",
        ),
        post("too dear, with filters", f"{{ {times(19, FILTERED)} }}", "other", "TOO_COMPLEX"),
        post("too dear, below changes", f"mutation {{ {times(19, CHANGED)} }}", "other", "TOO_COMPLEX").by("admin"),
        post("fields that no one has", f"{{ {times(10, UNKNOWN)} }}", "other", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "arguments that no one has",
            f"{{ {times(19, 'a§: users(' + times(30, 'nope§: 1') + ') { id }')} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "variables that no one has",
            f"query({times(90, '$v§: String')}) {{ {times(19, 'a§: users(first: $v§, where: {name: {in: [$v1§ $v2§ $v3§ $v4§]}}) { id }')} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post("90 lists without a selection", f"{{ {times(90, 'users')} }}", "other", "GRAPHQL_VALIDATION_FAILED"),
        post("a bracket too many at the end", f"{{ {times(10, UNKNOWN)} ) }}", "other", "GRAPHQL_PARSE_FAILED"),
        post("an empty selection at the end", f"{{ {times(10, UNKNOWN)} a {{ }} }}", "other", "GRAPHQL_PARSE_FAILED"),
        post(
            "a string that never ends at the end",
            f'{{ {times(10, UNKNOWN)} a(b: "x }} }}',
            "other",
            "GRAPHQL_PARSE_FAILED",
        ),
        post("60 fragments that agree", spread(60, "1"), "answered"),
        post("60 fragments that do not", spread(60, "§"), "other", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "fields of all types under 14 keys",
            "{ __schema { types { name "
            + times(14, "a§: fields { name args { name type { name kind ofType { name } } } }")
            + " } } }",
            "other",
            "TOO_COMPLEX",
        ),
        post(
            "the largest type under 20 keys",
            "{ "
            + times(
                20, 'a§: __type(name: "Query") { fields { name args { name type { name kind ofType { name } } } } }'
            )
            + " }",
            "answered",
        ),
    ],
)
