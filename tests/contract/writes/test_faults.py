"""All faults of a request's values at once, each with its place: in bodies, arguments and variables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.http.data import ANN, POST
from tests.contract.writes.shop import Shop
from tests.contract.writes.vault import BOX
from tests.support.effort import scaled

CREATE = "mutation($input: PostCreate!) { a: createPost(input: $input) { id } }"


def test_a_body_tells_all_its_faults(shop: Shop) -> None:
    with shop.unchanged():
        body = {"title": "x" * 201, "published": 1, "nope": 1, "id": "x", "body": 3}
        answer = shop.rest("POST", "/posts", body, who="ann")
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
    assert sorted(answer.places) == ["/authorId", "/body", "/id", "/nope", "/published", "/title"]
    assert all(error["message"] for error in answer.json()["errors"])


def test_variables_tell_all_their_faults_of_type_and_of_constraint(shop: Shop) -> None:
    given = {"title": "", "published": 1, "nope": 1, "body": 3}
    with shop.unchanged():
        for _ in range(3):
            answer = shop.ql(CREATE, {"input": given}, who="ann")
            assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
            assert sorted(answer.places) == [
                f"/variables/input/{name}" for name in ("authorId", "body", "nope", "published", "title")
            ]


def test_the_same_faults_are_told_of_a_known_document(shop: Shop) -> None:
    """Cold, graphql-core looks at the variables; hot, it does not."""
    fine = {"authorId": ANN, "title": "t", "body": "b"}
    wrong = {**fine, "title": 5, "body": "x" * 20_001}
    with shop.unchanged():
        cold = shop.ql(CREATE, {"input": wrong}, who="ann")
    for _ in range(3):
        assert shop.ql(CREATE, {"input": fine}, who="ann").status == 200
    with shop.unchanged():
        hot = shop.ql(CREATE, {"input": wrong}, who="ann")
    assert (cold.status, cold.json()) == (hot.status, hot.json())
    assert cold.places == ["/variables/input/title", "/variables/input/body"]


def test_a_document_tells_the_faults_of_all_its_fields(shop: Shop) -> None:
    document = f"""mutation($t: String!, $id: ID!) {{
        a: updatePost(id: $id, patch: {{title: ""}}) {{ author {{ posts(first: 0) {{ id }} }} }}
        b: createPost(input: {{authorId: "{ANN}", title: $t, body: "b"}}) {{ id }}
        c: updateUser(id: $id, patch: {{name: "", email: "none"}}) {{ id }}
    }}"""
    with shop.unchanged():
        answer = shop.ql(document, {"t": "x" * 201, "id": POST[1]}, who="ann")
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
    assert answer.places == ["/a/patch/title", "/posts/first", "/variables/t", "/c/patch/name", "/c/patch/email"]


def test_a_variable_that_is_missing_is_told_with_the_others(shop: Shop) -> None:
    document = "mutation($id: ID!, $patch: PostPatch!, $n: Int!) { updatePost(id: $id, patch: $patch) { author { posts(first: $n) { id } } } }"
    with shop.unchanged():
        answer = shop.ql(document, {"patch": {"title": ""}, "n": "x"}, who="ann")
    assert sorted(answer.places) == ["/variables/id", "/variables/n", "/variables/patch/title"]
    with shop.unchanged():
        assert shop.ql(document, {}, who="ann").places == ["/variables/id", "/variables/patch", "/variables/n"]


def test_no_value_is_told_again_that_was_given(shop: Shop) -> None:
    with shop.unchanged():
        answer = shop.ql(CREATE, {"input": {"title": 1, "body": "long secret"}}, who="ann")
    assert b"long secret" not in answer.body


@pytest.mark.parametrize("name", ["title", "body", "authorId", "published"])
@pytest.mark.parametrize("value", [None, 1, 1.5, True, [], {}, ["x"], {"a": 1}])
def test_both_styles_tell_the_same_places(shop: Shop, name: str, value: Any) -> None:
    row = {"authorId": ANN, "title": "t", "body": "b", name: value}
    if (name, value) == ("published", True) or (name == "authorId" and value == 1 and value is not True):
        return  # fine, and an ill-formed id that names nothing
    with shop.unchanged():
        rest = shop.rest("POST", "/posts", row, who="ann")
        reply = shop.ql(CREATE, {"input": row}, who="ann")
    assert (rest.status, rest.places) == (422, [f"/{name}"])
    assert (reply.status, reply.places) == (422, [f"/variables/input/{name}"])


def test_a_field_that_may_be_read_and_not_written_is_told_by_its_place(safe: Shop) -> None:
    with safe.unchanged():
        answer = safe.rest("PATCH", f"/boxes/{BOX[1]}", {"rank": 1, "notes": 2, "label": ""}, who="ann")
    assert (answer.status, answer.code, answer.places) == (403, "FORBIDDEN", ["/rank", "/notes"])


def test_not_more_faults_are_told_than_anyone_reads(shop: Shop) -> None:
    with shop.unchanged():
        answer = shop.rest("POST", "/posts", {f"n{n}": n for n in range(5_000)}, who="ann")
        assert answer.status == 422 and len(answer.places) <= 40
        answer = shop.rest("POST", "/posts", [{f"n{n}": n for n in range(100)}] * 100, who="ann")
        assert answer.status == 422 and len(answer.places) <= 40


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([ANN, "t", "", "paid", 1.5, 2**40]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["title", "body", "authorId", "id", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
DOCUMENT = """mutation($id: ID!, $p: PostPatch!, $r: PostReplace!, $v: Int, $n: Int, $w: CommentWhere, $o: [CommentOrder!], $if: Boolean!) {
    a: updatePost(id: $id, patch: $p, ifVersion: $v) { comments(first: $n, where: $w, orderBy: $o) { id } }
    b: replacePost(id: $id, input: $r, ifVersion: $v) { id @include(if: $if) title }
    c: deletePost(id: $id) @skip(if: $if) { id }
}"""


@pytest.mark.slow
@given(st.fixed_dictionaries({}, optional={name: JSON for name in ("id", "p", "r", "v", "n", "w", "o", "if")}))
@settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_variables_are_too_odd_to_be_answered(shop: Shop, variables: Any) -> None:
    answer = shop.ql(DOCUMENT, variables, who="ann")
    assert answer.status in (200, 400, 422)
    if "errors" in answer.json():
        codes = {error["extensions"]["code"] for error in answer.json()["errors"]}
        assert codes <= {"BAD_USER_INPUT", "NOT_FOUND", "FORBIDDEN", "CONFLICT", "PRECONDITION_FAILED", "TOO_COMPLEX"}
