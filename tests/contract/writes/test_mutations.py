"""Mutations: all fields of a request in order, in one transaction, each with an answer of its own moment."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.http.data import ANN, COMMENT, NOBODY, ORDER, POST
from tests.contract.writes.shop import Shop, error_of

RESPONSE = "application/graphql-response+json"


def make(title: str, more: str = "") -> str:
    return f'createPost(input: {{authorId: "{ANN}", title: "{title}", body: "b"{more}}})'


def change(number: int, title: str) -> str:
    return f'updatePost(id: "{POST[number]}", patch: {{title: "{title}"}})'


# all or nothing


def test_fields_run_in_their_order(shop: Shop) -> None:
    document = f"""mutation {{
        a: {change(1, "one")} {{ title version }}
        b: {change(1, "two")} {{ title version }}
        c: deletePost(id: "{POST[1]}") {{ title version }}
    }}"""
    assert json.dumps(shop.data(document, who="ann")) == json.dumps(
        {"a": {"title": "one", "version": 2}, "b": {"title": "two", "version": 3}, "c": {"title": "two", "version": 3}}
    )


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (f'updatePost(id: "{NOBODY}", patch: {{title: "x"}})', "NOT_FOUND"),
        (f'updatePost(id: "{POST[6]}", patch: {{title: "x"}})', "NOT_FOUND"),
        (f'updatePost(id: "{POST[4]}", patch: {{title: "x"}})', "FORBIDDEN"),
        (f'updatePost(id: "{POST[2]}", ifVersion: 9, patch: {{title: "x"}})', "PRECONDITION_FAILED"),
        (f'updateUser(id: "{ANN}", patch: {{email: "ben@example.com"}})', "CONFLICT"),
        (f'updateOrder(id: "{ORDER[1]}", patch: {{status: delivered}})', "CONFLICT"),
        (f'deleteUser(id: "{ANN}")', "CONFLICT"),
        (f'createComment(input: {{authorId: "{ANN}", postId: "{NOBODY}", body: "b"}})', "CONFLICT"),
        (f'createOrder(input: {{customerId: "{ANN}", total: "1", status: paid}})', "CONFLICT"),
    ],
)
def test_one_that_fails_undoes_them_all(shop: Shop, call: str, code: str) -> None:
    with shop.unchanged():
        for place in range(3):
            calls = [f"a: {make('new')} {{ id }}", f"b: {change(1, 'x')} {{ id }}"]
            calls.insert(place, f"wrong: {call} {{ id }}")
            error = error_of(shop.ql("mutation { " + " ".join(calls) + " }", who="ann"))
            assert (error["extensions"]["code"], error["path"]) == (code, ["wrong"])


def test_a_failure_is_told_without_an_alias_by_the_name_of_the_field(shop: Shop) -> None:
    error = error_of(shop.ql(f'mutation {{ deletePost(id: "{NOBODY}") {{ id }} }}'))
    assert error["path"] == ["deletePost"]
    legacy = shop.service.post(
        {"query": f'mutation {{ deletePost(id: "{NOBODY}") {{ id }} }}'}, token=shop.token("admin")
    )
    assert (legacy.status, legacy.kind, legacy.json()["data"]) == (200, "application/json", None)


# each answer is of its moment


def test_an_answer_is_read_right_after_its_write(shop: Shop) -> None:
    document = f"""mutation {{
        a: {make("first")} {{ author {{ postsConnection {{ totalCount }} posts(orderBy: [{{id: DESC}}], first: 1) {{ title }} }} }}
        b: {make("second")} {{ author {{ postsConnection {{ totalCount }} posts(orderBy: [{{id: DESC}}], first: 1) {{ title }} }} }}
        c: {change(1, "third")} {{ title author {{ posts(first: 1) {{ title }} }} }}
        d: updateUser(id: "{ANN}", patch: {{name: "Anna"}}) {{ name posts(first: 1) {{ title author {{ name }} }} }}
    }}"""
    data = shop.data(document, who="ann")
    assert data["a"] == {"author": {"postsConnection": {"totalCount": 4}, "posts": [{"title": "first"}]}}
    assert data["b"] == {"author": {"postsConnection": {"totalCount": 5}, "posts": [{"title": "second"}]}}
    assert data["c"] == {"title": "third", "author": {"posts": [{"title": "third"}]}}
    assert data["d"] == {"name": "Anna", "posts": [{"title": "third", "author": {"name": "Anna"}}]}


def test_the_answer_of_a_deletion_is_read_right_before_it(shop: Shop) -> None:
    document = f"""mutation {{
        a: deletePost(id: "{POST[1]}") {{ title comments {{ body post {{ title }} author {{ name }} }} author {{ postsConnection {{ totalCount }} }} }}
        b: {change(2, "x")} {{ author {{ postsConnection {{ totalCount }} }} }}
    }}"""
    data = shop.data(document, who="ann")
    assert [each["body"] for each in data["a"]["comments"]] == ["nice", "so-so", "thanks"]
    assert data["a"]["comments"][0] == {"body": "nice", "post": {"title": "Alpha"}, "author": {"name": "Ben"}}
    assert data["a"]["author"]["postsConnection"]["totalCount"] == 3
    assert data["b"]["author"]["postsConnection"]["totalCount"] == 2


def test_a_page_in_an_answer_leads_on(shop: Shop) -> None:
    answer = shop.data(
        f"mutation {{ {change(1, 'x')} {{ author {{ postsConnection(first: 1) {{ nodes {{ title }} pageInfo {{ endCursor hasNextPage }} }} }} }} }}",
        who="ann",
    )["updatePost"]["author"]["postsConnection"]
    assert answer["nodes"] == [{"title": "x"}] and answer["pageInfo"]["hasNextPage"]
    query = "query($id: ID!, $c: String) { user(id: $id) { posts(first: 1, after: $c) { title } } }"
    found = shop.data(query, {"id": ANN, "c": answer["pageInfo"]["endCursor"]}, who="ann")
    assert found == {"user": {"posts": [{"title": "Beta"}]}}


def test_a_second_field_sees_what_the_first_made_visible(shop: Shop) -> None:
    document = f"""mutation {{
        a: updatePost(id: "{POST[3]}", patch: {{published: true}}) {{ published comments {{ body }} }}
        b: createComment(input: {{postId: "{POST[3]}", authorId: "{ANN}", body: "now"}}) {{ post {{ published comments {{ body }} }} }}
    }}"""
    assert shop.data(document, who="ann")["b"]["post"] == {
        "published": True,
        "comments": [{"body": "note to self"}, {"body": "now"}],
    }


# the language


def test_fragments_variables_and_typename(shop: Shop) -> None:
    document = """
        mutation Both($id: ID!, $patch: PostPatch!, $input: PostCreate!, $n: Int = 1) {
            __typename
            ...changes
            made: createPost(input: $input) { ...shown t: __typename }
        }
        fragment changes on Mutation { updatePost(id: $id, patch: $patch) { ...shown ... on Post { author { posts(first: $n) { title } } } } }
        fragment shown on Post { title published }
    """
    variables = {
        "id": POST[1],
        "patch": {"title": "N", "published": False},
        "input": {"authorId": ANN, "title": "M", "body": ""},
    }
    data = shop.data(document, variables, who="ann")
    assert json.dumps(data) == json.dumps(
        {
            "__typename": "Mutation",
            "updatePost": {"title": "N", "published": False, "author": {"posts": [{"title": "N"}]}},
            "made": {"title": "M", "published": False, "t": "Post"},
        }
    )


def test_equal_keys_are_merged_and_done_once(shop: Shop) -> None:
    document = f"mutation {{ {change(1, 'x')} {{ title }} {change(1, 'x')} {{ version author {{ name }} }} }}"
    assert shop.data(document, who="ann") == {"updatePost": {"title": "x", "version": 2, "author": {"name": "Ann"}}}
    assert shop.version("posts", POST[1]) == 2
    with shop.unchanged():
        answer = shop.ql(f"mutation {{ {change(1, 'x')} {{ title }} {change(1, 'y')} {{ title }} }}", who="ann")
    assert (answer.status, answer.code) == (400, "GRAPHQL_VALIDATION_FAILED")


@pytest.mark.parametrize(("one", "other"), [(True, False), (False, True), (False, False), (True, True)])
def test_skip_and_include_decide_which_fields_run(shop: Shop, one: bool, other: bool) -> None:
    document = f"""mutation($one: Boolean!, $other: Boolean!) {{
        a: {change(1, "x")} @include(if: $one) {{ version }}
        b: {change(2, "y")} @skip(if: $other) {{ version }}
        ... @include(if: $one) {{ c: {change(2, "z")} {{ version }} }}
    }}"""
    for run in range(3):  # cold, and then hot
        shop.refill()
        data = shop.data(document, {"one": one, "other": other}, who="ann")
        assert list(data) == ["a"] * one + ["b"] * (not other) + ["c"] * one, run
        assert shop.version("posts", POST[1]) == 1 + one
        assert shop.version("posts", POST[2]) == 1 + one + (not other)


def test_a_mutation_whose_fields_are_all_skipped_does_nothing(shop: Shop) -> None:
    with shop.unchanged():
        assert shop.data(f"mutation {{ {change(1, 'x')} @skip(if: true) {{ id }} }}", who="ann") == {}
        assert shop.data("mutation { __typename }", who="ann") == {"__typename": "Mutation"}


def test_a_variable_that_is_not_given_leaves_its_field_out(shop: Shop) -> None:
    document = f'mutation($t: String, $b: String = "kept") {{ updatePost(id: "{POST[1]}", patch: {{title: $t, body: $b}}) {{ title body }} }}'
    assert shop.data(document, {}, who="ann") == {"updatePost": {"title": "Alpha", "body": "kept"}}
    assert shop.data(document, {"b": "x"}, who="ann") == {"updatePost": {"title": "Alpha", "body": "x"}}
    with shop.unchanged():
        answer = shop.ql(document, {"t": None}, who="ann")
    assert answer.code == "BAD_USER_INPUT"


def test_the_operation_to_run_is_named(shop: Shop) -> None:
    document = f"mutation A {{ {change(1, 'a')} {{ title }} }} mutation B {{ {change(1, 'b')} {{ title }} }} query C {{ __typename }}"
    sent = {"query": document, "operationName": "B"}
    answer = shop.service.post(sent, token=shop.token("ann"))
    assert answer.json() == {"data": {"updatePost": {"title": "b"}}}
    assert shop.version("posts", POST[1]) == 2


def test_values_that_stand_in_variables_of_json_are_those_of_the_request(safe: Shop) -> None:
    """A document is recognised when it comes again; what it holds by variables must not be."""
    document = """mutation($x: JSON, $y: String) {
        createThing(input: {data: {a: $x, list: [{y: $y}, 1], deep: {deeper: {y: $y}}}}) { data }
    }"""
    for number in range(4):
        data = safe.data(document, {"x": number, "y": f"s{number}"}, who="zoe" if number % 2 else "ann")
        own = {"y": f"s{number}"}
        assert data["createThing"]["data"] == {"a": number, "list": [own, 1], "deep": {"deeper": own}}
    assert safe.data(document, {"y": None})["createThing"]["data"] == {
        "list": [{"y": None}, 1],
        "deep": {"deeper": {"y": None}},
    }
    patch = "mutation($x: JSON!) { updateThing(id: 1, patch: {data: [$x, {k: $x}]}) { data } }"
    for value in (1, "x", {"a": 2}, [3], 4):
        assert safe.data(patch, {"x": value})["updateThing"]["data"] == [value, {"k": value}]


# by GET, and what it costs


def test_a_mutation_is_never_run_by_get(shop: Shop) -> None:
    document = f"mutation {{ {change(1, 'x')} {{ title }} }}"
    for _ in range(3):  # also when the document is well known
        version = shop.version("posts", POST[1])
        answer = shop.service.get(
            f"/graphql?query={quote(document)}", token=shop.token("ann"), headers={"accept": RESPONSE}
        )
        assert (answer.status, answer.code, answer.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", "POST")
        assert shop.version("posts", POST[1]) == version
        assert shop.ql(document, who="ann").status == 200


def test_the_limits_of_documents_hold_for_mutations(shop: Shop) -> None:
    with shop.unchanged():
        many = " ".join(f"a{n}: {make('x')} {{ id }}" for n in range(21))
        assert shop.ql(f"mutation {{ {many} }}", who="ann").code == "TOO_COMPLEX"
        dear = "{ author { posts(first: 100) { comments(first: 50) { id } } } }"
        answer = shop.ql(f"mutation {{ a: {make('x')} {dear} }}", who="ann")
        assert (answer.status, answer.code) == (400, "TOO_COMPLEX")
        fair = "{ author { posts(first: 10) { comments(first: 40) { id } } } }"  # 1 + 1 + 10 × 41
        dear = " ".join(f"a{n}: {make('x')} {fair}" for n in range(13))
        answer = shop.ql(f"mutation {{ {dear} }}", who="ann")
        assert (answer.status, answer.code) == (400, "TOO_COMPLEX")
        deep = "{ id }"
        for _ in range(5):
            deep = "{ author { posts { id comments " + deep + " } } }"
        assert shop.ql(f"mutation {{ {make('x')} {deep} }}", who="ann").code == "TOO_DEEP"
    fair = " ".join(f"a{n}: {make('x')} {fair}" for n in range(12))
    assert shop.ql(f"mutation {{ {fair} }}", who="ann").status == 200


def test_the_price_of_an_array_is_that_of_all_its_answers(shop: Shop) -> None:
    rows = [{"authorId": ANN, "title": str(n), "body": ""} for n in range(100)]
    with shop.unchanged():
        answer = shop.rest("POST", "/posts?fields=author(posts[first=100](id))", rows, who="ann")
        assert (answer.status, answer.code) == (400, "TOO_COMPLEX")
        deep = "author(posts(" * 5 + "id" + "))" * 5
        assert shop.rest("POST", f"/posts?fields={deep}", rows, who="ann").code == "TOO_DEEP"
        assert (
            shop.rest(
                "PATCH", f"/posts/{POST[1]}?fields=author(posts[first=100](comments[first=100](id)))", {}, who="ann"
            ).status
            == 400
        )
    assert shop.rest("POST", "/posts?fields=author(posts[first=40](id))", rows, who="ann").status == 201


def test_a_price_that_comes_by_variables_is_looked_at_every_time(shop: Shop) -> None:
    document = f"mutation($n: Int!) {{ {change(1, 'x')} {{ author {{ posts(first: $n) {{ comments(first: $n) {{ id }} }} }} }} }}"
    for _ in range(3):
        assert shop.ql(document, {"n": 2}, who="ann").status == 200
        with shop.unchanged():
            assert shop.ql(document, {"n": 90}, who="ann").code == "TOO_COMPLEX"
            assert shop.ql(document, {"n": 101}, who="ann").code == "BAD_USER_INPUT"


def test_ids_may_be_integers(safe: Shop) -> None:
    made = safe.data(
        'mutation { a: createThing(input: {parentId: 1}) { id parent { id text } } b: createThing(input: {parentId: "2"}) { id parentId } }'
    )
    assert made["b"]["parentId"] == "2" and int(made["b"]["id"]) == int(made["a"]["id"]) + 1
    location = safe.rest("POST", "/things", {"parentId": made["a"]["id"]}).headers["location"]
    assert safe.get(location)["parentId"] == made["a"]["id"]
    found: Any = safe.data(f"mutation {{ deleteThing(id: {made['a']['id']}) {{ id }} }}")
    assert found["deleteThing"]["id"] == made["a"]["id"]
    assert (safe.get(location)["parentId"], safe.get(location)["version"]) == (None, 2)


@pytest.mark.parametrize(
    "id", ["0", "-1", "01", "1.0", "+1", "1e0", "x", " 1", "99999999999999999999", "9" * 400, "%31%20"]
)
def test_an_ill_formed_integer_id_names_nothing(safe: Shop, id: str) -> None:
    with safe.unchanged():
        for method in ("PUT", "PATCH", "DELETE"):
            assert (
                safe.rest(method, f"/things/{quote(id, safe='%+')}", None if method == "DELETE" else {}).status == 404
            )
        document = "mutation($id: ID!) { updateThing(id: $id, patch: {}) { id } }"
        assert error_of(safe.ql(document, {"id": id}))["extensions"]["code"] == "NOT_FOUND"
        dangling = safe.rest("PATCH", "/things/2", {"parentId": id})
        assert (dangling.status, dangling.places) == (409, ["/parentId"])


def test_ben_and_ann_are_not_mixed_up_by_a_known_document(shop: Shop) -> None:
    document = 'mutation($id: ID!) { updateComment(id: $id, patch: {body: "x"}) { author { name } } }'
    for _ in range(3):
        assert shop.data(document, {"id": COMMENT[1]}, who="ben")["updateComment"]["author"]["name"] == "Ben"
        with shop.unchanged():
            assert error_of(shop.ql(document, {"id": COMMENT[1]}, who="ann"))["extensions"]["code"] == "FORBIDDEN"
            assert error_of(shop.ql(document, {"id": COMMENT[7]}, who="ann"))["extensions"]["code"] == "NOT_FOUND"
