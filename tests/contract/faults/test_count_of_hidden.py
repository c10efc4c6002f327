"""Counts of what is hidden: a total, or the mere fact that there is a next page, tells of rows and fields.

Published for Directus (CVE-2026-35442, aggregates over concealed fields), Parse Server (GHSA-rmhf-xv62-rm99, counts
through a relation) and SurrealDB (GHSA-c8jx-96c9-8xrp, counts by an index). Here a total counts the rows that its
caller would get on all pages, and no other number is told.
"""

from __future__ import annotations

from diptych.model.rules.expr import TRUE, Expr
from diptych.policy import access
from tests.contract.faults.scene import Question, Scene, changed, documents, urls, without
from tests.contract.http import data
from tests.contract.http.data import ANN, BEN, COMMENT, ORDER, POST
from tests.contract.writes.shop import Rows
from tests.support.in_process import encoded

WORLDS: list[Rows] = [
    data.ROWS,
    without(without(data.ROWS, "Comment", COMMENT[5], COMMENT[7]), "Post", POST[3], POST[6]),
]
"""With two drafts and their comments, and without."""
BARE = "totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
QUESTIONS = [
    *urls(
        "/posts",
        [
            {"count": "exact"},
            {"count": "exact", "first": "6"},
            {"first": "6"},
            {"last": "6"},
            {"first": "6", "sort": "-title"},
            {"first": "1", "offset": "6"},
            {"last": "6", "sort": "title"},
        ],
    ),
    *urls("/comments", [{"count": "exact"}, {"first": "6"}]),
    *urls("/users", [{"fields": "posts(id)"}, {"fields": "comments[first=100](id)"}]),
    Question(f"/users/{BEN}/posts?count=exact"),
    Question(f"/users/{BEN}/posts?first=2"),
    *documents(
        "{ … }",
        [
            f"postsConnection {{ {BARE} }}",
            f"postsConnection(first: 6) {{ {BARE} }}",
            f"postsConnection(last: 6) {{ {BARE} }}",
            f"commentsConnection(first: 6, orderBy: [{{body: ASC}}]) {{ {BARE} }}",
            "postsConnection(first: 6) { totalCount }",
            "postsConnection(first: 6) { pageInfo { hasNextPage } }",
            f'user(id: "{BEN}") {{ postsConnection(first: 2) {{ {BARE} }} }}',
            "users { id postsConnection(first: 2) { totalCount pageInfo { hasNextPage } } commentsConnection { totalCount } }",
            "usersConnection { nodes { commentsConnection(first: 2) { pageInfo { hasNextPage } } } }",
        ],
    ),
]


def test_rows_that_are_hidden_are_in_no_count(shop: Scene) -> None:
    """Drafts of others alter no `totalCount`, no `page.total`, no `hasNextPage`, no cursor, at the root and inside."""
    assert shop.told_apart(WORLDS, QUESTIONS, who="anonymous") == []
    assert shop.told_apart(WORLDS, QUESTIONS, who="zoe") == []
    assert shop.told_apart(WORLDS, QUESTIONS, who="admin") == QUESTIONS


def test_without_the_rules_of_the_rows_the_counts_would_tell(shop: Scene) -> None:
    """The same check with the fault planted: a root list that is not narrowed to what may be read."""

    def unruled(rule: Expr, known: Expr) -> Expr:
        return TRUE

    with shop.planted(access, "assume", unruled):
        assert shop.told_apart(WORLDS, QUESTIONS, who="zoe") == QUESTIONS


EMAILS = [changed(data.ROWS, "User", BEN, email=each) for each in ("ben@example.com", "zed@example.org")]
WHERE = '{email: {contains: "example.com"}}'
BY_EMAIL = [
    *urls(
        "/users",
        [
            {"count": "exact", "where": {"email": {"contains": "example.com"}}, "first": "3", "fields": "id"},
            {"where": {"email": {"contains": "example.com"}}, "first": "3", "fields": "id"},
            {"count": "exact", "email": "ben@example.com", "fields": "id"},
        ],
    ),
    Question(f"{{ usersConnection(where: {WHERE}) {{ totalCount }} }}"),
    Question(f"{{ usersConnection(first: 3, where: {WHERE}) {{ pageInfo {{ hasNextPage }} }} }}"),
]


def test_a_count_by_a_masked_field_counts_where_it_shows(shop: Scene) -> None:
    """`totalCount` of a filter on emails is at most one for Ann, whatever the emails of others are."""
    assert shop.told_apart(EMAILS, BY_EMAIL, who="ann") == []
    assert shop.told_apart(EMAILS, BY_EMAIL, who="admin") == BY_EMAIL
    shop.fill(data.ROWS)
    assert shop.get("/users?count=exact&email[contains]=example.com", "ann")["page"]["total"] == 1


def test_a_total_is_the_number_of_rows_on_all_pages(shop: Scene) -> None:
    """What is counted is what is listed, for everyone, in both styles and through a relation."""
    for who, posts, orders in (("anonymous", 6, None), ("ann", 7, 3), ("ben", 7, 3), ("staff", 6, 7), ("admin", 8, 7)):
        assert (
            shop.get("/posts?count=exact&first=1", who)["page"]["total"]
            == posts
            == len(shop.get("/posts", who)["data"])
        )
        assert (
            shop.data("{ postsConnection(first: 1) { totalCount } }", who=who)["postsConnection"]["totalCount"] == posts
        )
        if orders is not None:
            assert shop.get("/orders?count=exact&first=1", who)["page"]["total"] == orders
            found = shop.data(
                f'{{ user(id: "{ANN}") {{ ordersConnection {{ totalCount }} orders {{ id }} }} }}', who=who
            )["user"]
            assert found["ordersConnection"]["totalCount"] == len(found["orders"]) == (3 if who != "ben" else 0)


def test_no_aggregate_but_the_count_can_be_asked(shop: Scene) -> None:
    """There is no sum, minimum or group to take over a field that is hidden, and no parameter that asks for one."""
    for name in (
        "sum",
        "min",
        "max",
        "avg",
        "aggregate",
        "groupBy",
        "group",
        "distinct",
        "having",
        "select",
        "search",
        "alias",
    ):
        for value in ("internalNote", "total"):
            assert shop.rest("GET", f"/orders?{encoded(**{name: value})}", who="ann").status == 400
            assert shop.rest("GET", f"/orders?{name}[{value}]=x", who="ann").status == 400
    for text in (
        "ordersAggregate { count }",
        "orders_aggregate { aggregate { max { internalNote } } }",
        "ordersConnection { sum { total } }",
        f'order(id: "{ORDER[2]}") {{ _count }}',
        "ordersConnection { groupBy(field: internalNote) { count } }",
    ):
        assert shop.ql(f"{{ {text} }}", who="admin").code == "GRAPHQL_VALIDATION_FAILED"
