"""Filters and sorts of a list: every operator on every type, the tree of `where`, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.contract.http.data import ANN, BEN, CLEO, NOBODY, ORDER, POST, ZOE
from tests.contract.http.shelf import HIGH, LOW, MIDDLE, VALUES
from tests.support.cases import cases
from tests.support.in_process import Service, encoded

# which items (1 low, 2 and 4 middle, 3 null, 5 high) match an operator with the middle value
EQUALITY = {"eq": [2, 4], "ne": [1, 3, 5]}
ORDERED = {**EQUALITY, "lt": [1], "lte": [1, 2, 4], "gt": [5], "gte": [2, 4, 5]}
ORDERED_FIELDS = ("text", "number", "big", "price", "ratio", "day", "moment", "mood")
NULLS = {"true": [3], "false": [1, 2, 4, 5]}


def wire(value: Any) -> Any:
    """A canonical value as a client writes it in JSON."""
    return (
        value
        if isinstance(value, bool | float | str) or (isinstance(value, int) and abs(value) < 2**53)
        else str(value)
    )


def text(value: Any) -> str:
    """A canonical value as a client writes it in a URL."""
    return str(wire(value)).lower() if isinstance(value, bool) else str(wire(value))


def found(service: Service, query: str) -> list[int]:
    return [int(row["id"]) for row in service.rows(f"/items?fields=id&{query}")]


def operators() -> Iterator[tuple[str, str, Any, list[int]]]:
    for name in ORDERED_FIELDS:
        for op, matches in ORDERED.items():
            yield name, op, VALUES[name][MIDDLE], matches
        yield name, "in", [VALUES[name][LOW], VALUES[name][HIGH]], [1, 5]
        yield name, "in", [], []
    yield "flag", "eq", True, [2, 4, 5]
    yield "flag", "ne", True, [1, 3]
    yield "flag", "eq", False, [1]
    yield "flag", "in", [False], [1]
    yield "flag", "in", [True, False], [1, 2, 4, 5]
    yield "parentId", "eq", "1", [2, 3]
    yield "parentId", "ne", "1", [1, 4, 5]
    yield "parentId", "in", ["1", "2", "nope"], [2, 3, 4, 5]
    yield "parentId", "eq", "nope", []
    yield "parentId", "ne", "nope", [1, 2, 3, 4, 5]
    yield "id", "eq", "1", [1]
    yield "id", "in", ["5", "1", "99"], [1, 5]
    yield "version", "gt", 0, [1, 2, 3, 4, 5]
    for part, matches in {"i": [2, 4], "M": [2, 4], "m": [], "%": [1], "_": [5], "": [1, 2, 4, 5], "é": [5]}.items():
        yield "text", "contains", part, matches
    for part, matches in {"id": [2, 4], "ID": [], "": [1, 2, 4, 5], "xMid": []}.items():
        yield "text", "endsWith", part, matches
    for part, matches in {"MID": [2, 4], "m\u0131d": [], "m\u00efd": [2, 4], "mi": [], "": []}.items():
        yield "text", "ieq", part, matches
    for part, matches in {"iD": [2, 4], "E\u0301": [5], "_": [5], "": [1, 2, 4, 5]}.items():
        yield "text", "icontains", part, matches
    for part, matches in {"m\u00cc": [2, 4], "E_": [5], "id": []}.items():
        yield "text", "istartsWith", part, matches
    for part, matches in {"\u0110": [], "\u00ccD": [2, 4], "\u017c": [5], "": [1, 2, 4, 5]}.items():
        yield "text", "iendsWith", part, matches
    for part, matches in {"Mi": [2, 4], "mi": [], "%": [], "A%": [1], "é_": [5], "": [1, 2, 4, 5], "Mid ": []}.items():
        yield "text", "startsWith", part, matches


@cases(("name", "op", "value", "matches"), list(operators()))
def test_an_operator_matches_the_same_rows_in_a_parameter_and_in_where(
    things: Service, name: str, op: str, value: Any, matches: list[int]
) -> None:
    if value != []:  # a parameter has at least one item
        plain = ",".join(map(text, value)) if isinstance(value, list) else text(value)
        assert found(things, f"{name}[{op}]={quote(plain, safe='')}") == matches
    given = [wire(each) for each in value] if isinstance(value, list) else wire(value)
    assert found(things, encoded(where={name: {op: given}})) == matches
    document = "query($w: ItemWhere) { items(where: $w) { id } }"
    rows = things.data(document, {"w": {name: {op: given}}})["items"]
    assert [int(row["id"]) for row in rows] == matches


@cases("name", [*VALUES, "parentId"])
def test_every_type_can_be_asked_for_null(things: Service, name: str) -> None:
    rows = {"true": [1], "false": [2, 3, 4, 5]} if name == "parentId" else NULLS
    for wanted, matches in rows.items():
        assert found(things, encoded(where={name: {"isNull": wanted == "true"}})) == matches
        if name != "count":
            assert found(things, f"{name}[isNull]={wanted}") == matches


def test_a_bare_parameter_means_eq_and_several_are_joined_by_and(things: Service) -> None:
    assert found(things, "text=Mid") == [2, 4]
    assert found(things, "text=Mid&parentId=2") == [4]
    assert found(things, "number[gte]=7&number[lt]=8") == [2, 4]
    assert found(things, "text=Mid&text[eq]=Mid&text[ne]=x") == [2, 4]
    assert found(things, "text=Mid&" + encoded(where={"id": {"ne": "2"}})) == [4]


def test_a_list_is_sent_with_commas_or_as_several_parameters(things: Service, shop: Service) -> None:
    """Generators of clients send `explode: true`, the default of OpenAPI; people write commas."""
    for one, other in (
        ("number[in]=1,7", "number[in]=1&number[in]=7"),
        ("text[in]=Mid,x", "text[in]=Mid&sort=id&text%5Bin%5D=x"),
        ("sort=-number,id", "sort=-number&sort=id"),
        ("id[in]=1,2,5&sort=-id", "id[in]=1&id[in]=2,5&sort=-id"),
    ):
        assert found(things, one) == found(things, other) != []
    joined, several = (shop.get(f"/posts?{query}") for query in ("fields=id,title,author(name)", FIELDS_APART))
    assert (several.status, several.json()) == (200, joined.json())
    assert things.get("/items?fields=id&fields=id").code == "BAD_REQUEST"  # as it is for fields=id,id
    assert things.get("/items?number[in]=1&number[in]=x").places == ["/query/number[in]"]
    for path in ("/items/changes?kinds=CREATED&kinds=DELETED", "/items/changes?kinds=CREATED,DELETED"):
        assert things.get(path).status == 200
    assert things.get("/items/changes?after=a&after=a").places == ["/query/after"]


FIELDS_APART = "fields=id&fields=title&fields=author(name)"


def test_a_field_named_as_a_parameter_is_filtered_through_where_only(things: Service) -> None:
    assert found(things, "count=exact") == [1, 2, 3, 4, 5]
    assert found(things, encoded(where={"count": {"gte": 2}})) == [2, 4, 5]
    for query in ("count[gte]=2", "count[eq]=exact", "count=2"):
        answer = things.get(f"/items?{query}")
        assert (answer.status, answer.code) == (400, "BAD_REQUEST")


def test_space_plus_and_percent_encoding_are_read_as_forms_have_them(shop: Service) -> None:
    for query in ("body=first+words", "body=first%20words", "b%6Fdy=first%20words"):
        assert [row["id"] for row in shop.rows(f"/posts?{query}")] == [POST[1]]
    assert shop.rows("/posts?body=first%2Bwords") == []
    assert [row["id"] for row in shop.rows("/posts?body[contains]=100%25+of_")] == [POST[2]]
    assert [row["id"] for row in shop.rows(f"/posts?title={quote('Émile')}")] == [POST[7]]
    assert [row["id"] for row in shop.rows(f"/posts?body={quote(chr(233) + ' ' + chr(34))}&count=exact")] == []


# where, over /posts as admin: which posts

TREES: list[tuple[Any, list[int]]] = [
    ({}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"and": []}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"or": []}, []),
    ({"not": {}}, []),
    ({"not": {"or": []}}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"or": [{}]}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"or": {"title": {"eq": "Beta"}}}, [2]),
    ({"or": {}}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"title": {"eq": "Alpha"}, "authorId": {"eq": BEN}}, [4]),
    ({"and": [{"title": {"eq": "Alpha"}}, {"authorId": {"eq": BEN}}]}, [4]),
    ({"or": [{"title": {"eq": "Beta"}}, {"authorId": {"eq": CLEO}}]}, [2, 7, 8]),
    ({"not": {"title": {"eq": "Alpha"}}}, [2, 3, 5, 6, 7]),
    ({"not": {"or": [{"title": {"eq": "Alpha"}}, {"not": {"published": {"eq": True}}}]}}, [2, 5, 7]),
    (
        {"or": [{"and": [{"title": {"eq": "Alpha"}}, {"not": {"authorId": {"eq": ANN}}}]}, {"id": {"in": [POST[2]]}}]},
        [2, 4, 8],
    ),
    ({"title": {"in": []}}, []),
    ({"title": {"ne": "Alpha", "gte": "D", "lt": "I"}}, [3, 6]),
    ({"author": {"name": {"eq": "Ann"}}}, [1, 2, 3]),
    ({"author": {}}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"not": {"author": {"name": {"eq": "Ann"}}}}, [4, 5, 6, 7, 8]),
    ({"comments": {"some": {}}}, [1, 2, 3, 4, 6, 8]),
    ({"comments": {"none": {}}}, [5, 7]),
    ({"comments": {"every": {"author": {"name": {"eq": "Ben"}}}}}, [2, 5, 6, 7]),
    ({"comments": {"some": {"body": {"eq": "nice"}}, "none": {"body": {"eq": "x"}}}}, [1]),
    ({"comments": {"some": {"author": {"posts": {"some": {"title": {"eq": "beta"}}}}}}}, [1, 2, 6]),
    ({"not": {"comments": {"every": {"body": {"contains": "n"}}}}}, [1, 2, 8]),
    ({"author": {"orders": {"some": {"status": {"eq": "delivered"}}}}}, [7, 8]),
]


@cases(("where", "numbers"), TREES)
def test_a_tree_of_where_matches_in_both_styles(shop: Service, where: Any, numbers: list[int]) -> None:
    token = shop.token(ANN, "admin")
    wanted = [{"id": POST[number]} for number in numbers]
    url = "/posts?fields=id&" + encoded(where=where)
    document = "query($w: PostWhere) { posts(where: $w) { id } }"
    for _ in range(3):  # cold, noted, remembered
        assert shop.rows(url, token=token) == wanted
        assert shop.data(document, {"w": where}, token=token)["posts"] == wanted


def test_filters_range_over_rows_that_the_caller_may_read(shop: Service) -> None:
    """Post 3 is a draft of Ann's with a comment of hers; post 6 one of Ben's."""
    about = encoded(where={"posts": {"some": {"title": {"eq": "Draft"}}}})
    assert shop.rows(f"/users?{about}") == []
    assert [row["id"] for row in shop.rows(f"/users?{about}", token=shop.token(ANN))] == [ANN]
    published = encoded(where={"posts": {"every": {"published": {"eq": True}}}}, count="exact", fields="id")
    assert [row["id"] for row in shop.rows(f"/users?{published}")] == [ANN, BEN, CLEO, ZOE]
    own = shop.get(f"/users?{published}", token=shop.token(ANN)).json()
    assert [row["id"] for row in own["data"]] == [BEN, CLEO, ZOE]
    assert own["page"]["total"] == 3
    assert shop.get("/comments?count=exact").json()["page"]["total"] == 6
    assert shop.get("/comments?count=exact", token=shop.token(BEN)).json()["page"]["total"] == 7


def test_a_filter_sees_null_where_the_caller_would(shop: Service) -> None:
    token = shop.token(ANN)
    for query, ids in {
        "email=ann@example.com": [ANN],
        "email=ben@example.com": [],
        "email[ne]=ben@example.com": [ANN, BEN, CLEO, ZOE],
        "email[isNull]=true": [BEN, CLEO, ZOE],
        "email[isNull]=false": [ANN],
        "email[contains]=@": [ANN],
        "email[in]=ann@example.com,ben@example.com": [ANN],
        "sort=email": [ANN, BEN, CLEO, ZOE],
        "sort=-email": [ANN, BEN, CLEO, ZOE],
        encoded(where={"not": {"email": {"startsWith": "a"}}}): [BEN, CLEO, ZOE],
    }.items():
        assert [row["id"] for row in shop.rows(f"/users?fields=id&{query}", token=token)] == ids, query
    assert [row["id"] for row in shop.rows("/users?sort=-email", token=shop.token(ANN, "admin"))] == [
        ZOE,
        CLEO,
        BEN,
        ANN,
    ]


# sorts


@cases(
    ("sort", "numbers"),
    [
        ("", [1, 2, 3, 4, 5, 6, 7]),
        ("note", [6, 4, 7, 2, 1, 3, 5]),
        ("-note", [2, 7, 4, 6, 1, 3, 5]),
        ("-note,-createdAt", [2, 7, 4, 6, 5, 3, 1]),
        ("note,-id", [6, 4, 7, 2, 5, 3, 1]),
        ("-id", [7, 6, 5, 4, 3, 2, 1]),
        ("id,note", [1, 2, 3, 4, 5, 6, 7]),
        ("total", [5, 4, 1, 2, 3, 7, 6]),
        ("-total,customerId", [6, 2, 3, 7, 1, 4, 5]),
        ("status", [5, 6, 2, 3, 7, 1, 4]),
        ("-status,-total,note", [4, 1, 7, 2, 3, 6, 5]),
        ("internalNote", [2, 5, 1, 3, 4, 6, 7]),
    ],
)
def test_a_sort_puts_nulls_last_in_both_directions_and_breaks_ties_by_id(
    shop: Service, sort: str, numbers: list[int]
) -> None:
    query = f"&sort={sort}" if sort else ""
    rows = shop.rows(f"/orders?fields=id{query}", token=shop.token(ANN, "admin"))
    assert [row["id"] for row in rows] == [ORDER[number] for number in numbers]


@cases("name", [name for name in VALUES if name not in ("data", "flag")])
def test_every_type_sorts_as_its_values_do(things: Service, name: str) -> None:
    assert found(things, f"sort={name}") == [1, 2, 4, 5, 3]
    assert found(things, f"sort=-{name}") == [5, 2, 4, 1, 3]


def test_text_sorts_by_code_point(shop: Service) -> None:
    rows = shop.rows("/posts?fields=title&sort=title", token=shop.token(ANN, "admin"))
    assert [row["title"] for row in rows] == ["Alpha", "Alpha", "Alpha", "Beta", "Draft", "Hidden", "beta", "Émile"]


# what is refused: a query string of /items, the places at fault

REFUSED: dict[str, list[str]] = {
    "nope=1": ["/query/nope"],
    "nope[eq]=1": ["/query/nope[eq]"],
    "text[like]=1": ["/query/text[like]"],
    "text[EQ]=1": ["/query/text[EQ]"],
    "text[]=1": ["/query/text[]"],
    "text[eq][eq]=1": ["/query/text[eq][eq]"],
    "text[eq=1": ["/query/text[eq"],
    "text.eq=1": ["/query/text.eq"],
    "=1": ["/query/"],
    "text=a&text=b": ["/query/text"],
    "text=a&t%65xt=b": ["/query/text"],
    "first=1&first=1": ["/query/first"],
    "where={}&where={}": ["/query/where"],
    "kinds=a&kinds=b": ["/query/kinds"],
    "text[ne]=a&text[ne]=b": ["/query/text[ne]"],
    "labels=red": ["/query/labels"],
    "parent=1": ["/query/parent"],
    "number[contains]=1": ["/query/number[contains]"],
    "flag[lt]=true": ["/query/flag[lt]"],
    "parentId[gt]=1": ["/query/parentId[gt]"],
    "mood[startsWith]=c": ["/query/mood[startsWith]"],
    "data=1": ["/query/data"],
    "data[eq]=1": ["/query/data[eq]"],
    "text[isNull]=": ["/query/text[isNull]"],
    "text[isNull]=yes": ["/query/text[isNull]"],
    "text[isNull]=TRUE": ["/query/text[isNull]"],
    "text[isNull]=1": ["/query/text[isNull]"],
    "sort=nope": ["/query/sort"],
    "sort=": ["/query/sort"],
    "sort=id,": ["/query/sort"],
    "sort=--id": ["/query/sort"],
    "sort=+id": ["/query/sort"],
    "sort=data": ["/query/sort"],
    "sort=parent": ["/query/sort"],
    "count=": ["/query/count"],
    "count=Exact": ["/query/count"],
    "nope=1&text[like]=2&sort=x&fields=zz": ["/query/nope", "/query/text[like]", "/query/sort", "/query/fields"],
    "%=1": ["/query/%"],
    "%zz=1": ["/query/%zz"],
    "text=%": ["/query/text"],
    "text=%4": ["/query/text"],
    "text=%g1": ["/query/text"],
    "text=%FF": ["/query/text"],
    "text=%ED%A0%80": ["/query/text"],
    "text=%C0%80": ["/query/text"],
    "text=%00": ["/query/text"],
    "text[contains]=a%00b": ["/query/text[contains]"],
    "number=7.0": ["/query/number"],
    "number=": ["/query/number"],
    "number=07": ["/query/number"],
    "number=%2B7": ["/query/number"],
    "number=2147483648": ["/query/number"],
    "number=" + "9" * 5000: ["/query/number"],
    "number[in]=1,,2": ["/query/number[in]"],
    "number[in]=1,x": ["/query/number[in]"],
    "big=9223372036854775808": ["/query/big"],
    "big=1e3": ["/query/big"],
    "price=0.501": ["/query/price"],
    "price=10000.00": ["/query/price"],
    "price=NaN": ["/query/price"],
    "price=1e2": ["/query/price"],
    "price=.5": ["/query/price"],
    "ratio=NaN": ["/query/ratio"],
    "ratio=Infinity": ["/query/ratio"],
    "ratio=1e400": ["/query/ratio"],
    "ratio=": ["/query/ratio"],
    "flag=1": ["/query/flag"],
    "flag=True": ["/query/flag"],
    "day=2026-02-30": ["/query/day"],
    "day=today": ["/query/day"],
    "day=infinity": ["/query/day"],
    "day=10000-01-01": ["/query/day"],
    "day=2026-1-1": ["/query/day"],
    "moment=now": ["/query/moment"],
    "moment=2026-01-01T00:00:00": ["/query/moment"],
    "moment=2026-01-01T00:00:00.1234567Z": ["/query/moment"],
    "moment=2026-01-01T24:00:00Z": ["/query/moment"],
    "moment=0001-01-01T00:00:00%2B01:00": ["/query/moment"],
    "moment=9999-12-31T23:59:59-01:00": ["/query/moment"],
    "mood=CALM": ["/query/mood"],
    "mood=": ["/query/mood"],
    "mood[in]=calm,nope": ["/query/mood[in]"],
    "where=": ["/query/where"],
    "where=nope": ["/query/where"],
    "where=null": ["/query/where"],
    "where=5": ["/query/where"],
    "where=[]": ["/query/where"],
    "where=%22x%22": ["/query/where"],
    "where=true": ["/query/where"],
    "where={}{}": ["/query/where"],
    "where={": ["/query/where"],
}

# the tree of where, the place at fault below it
REFUSED_TREES: list[tuple[Any, str]] = [
    ({"nope": {"eq": 1}}, "/nope"),
    ({"text": None}, "/text"),
    ({"text": {}}, "/text"),
    ({"text": "Mid"}, "/text"),
    ({"text": []}, "/text"),
    ({"text": {"eq": None}}, "/text/eq"),
    ({"text": {"in": None}}, "/text/in"),
    ({"text": {"in": [None]}}, "/text/in"),
    ({"text": {"in": ["a", 1]}}, "/text/in"),
    ({"text": {"in": [["a"]]}}, "/text/in"),
    ({"text": {"eq": ["a"]}}, "/text/eq"),
    ({"text": {"eq": {"a": 1}}}, "/text/eq"),
    ({"text": {"eq": 5}}, "/text/eq"),
    ({"text": {"eq": "a\x00"}}, "/text/eq"),
    ({"text": {"isNull": None}}, "/text/isNull"),
    ({"text": {"isNull": "true"}}, "/text/isNull"),
    ({"text": {"isNull": 1}}, "/text/isNull"),
    ({"number": {"eq": "7"}}, "/number/eq"),
    ({"number": {"eq": 7.5}}, "/number/eq"),
    ({"number": {"eq": True}}, "/number/eq"),
    ({"number": {"eq": 2**31}}, "/number/eq"),
    ({"big": {"eq": 2**63}}, "/big/eq"),
    ({"big": {"eq": 1.5}}, "/big/eq"),
    ({"price": {"eq": 0.5}}, "/price/eq"),
    ({"price": {"eq": "0.505"}}, "/price/eq"),
    ({"ratio": {"eq": "0.1"}}, "/ratio/eq"),
    ({"flag": {"eq": "true"}}, "/flag/eq"),
    ({"flag": {"eq": 1}}, "/flag/eq"),
    ({"id": {"eq": True}}, "/id/eq"),
    ({"id": {"eq": 1.5}}, "/id/eq"),
    ({"data": {"eq": {}}}, "/data/eq"),
    ({"mood": {"eq": "CALM"}}, "/mood/eq"),
    ({"and": None}, "/and"),
    ({"and": 5}, "/and"),
    ({"and": [None]}, "/and/0"),
    ({"and": [{}, 5]}, "/and/1"),
    ({"or": [{"nope": {}}]}, "/or/0/nope"),
    ({"or": "x"}, "/or"),
    ({"not": None}, "/not"),
    ({"not": []}, "/not"),
    ({"not": {"text": {"eq": None}}}, "/not/text/eq"),
    ({"parent": None}, "/parent"),
    ({"parent": []}, "/parent"),
    ({"parent": {"eq": "1"}}, "/parent/eq"),
    ({"parent": {"some": {}}}, "/parent/some"),
    ({"labels": {}}, "/labels"),
    ({"labels": None}, "/labels"),
    ({"labels": {"some": None}}, "/labels/some"),
    ({"labels": {"any": {}}}, "/labels/any"),
    ({"labels": {"word": {"eq": "red"}}}, "/labels/word/eq"),
    ({"labels": {"word": "red"}}, "/labels/word"),
    ({"labels": {"word": {"sum": {"eq": "1"}}}}, "/labels/word/sum"),
    ({"labels": {"count": {"contains": 1}}}, "/labels/count/contains"),
    ({"labels": {"some": {"word": {}}}}, "/labels/some/word"),
    ({"labels": {"some": {"nope": {}}}}, "/labels/some/nope"),
]


@cases("query", REFUSED)
def test_a_fault_in_the_query_string_is_told_with_its_place(things: Service, query: str) -> None:
    for _ in range(2):
        answer = things.get(f"/items?{query}")
        assert (answer.status, answer.code) == (400, "BAD_REQUEST"), answer.body
        assert answer.places == REFUSED[query]
        assert answer.headers["cache-control"] == "no-store"


@cases(("where", "place"), REFUSED_TREES)
def test_a_fault_in_where_is_told_with_its_place(things: Service, where: Any, place: str) -> None:
    before = things.runs
    answer = things.get("/items?" + encoded(where=where))
    assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", ["/query/where" + place]), answer.body
    document = "query($w: ItemWhere) { items(where: $w) { id } }"
    refused = things.query(document, {"w": where})
    assert (refused.status, refused.code) == (422, "BAD_USER_INPUT"), refused.body
    assert things.runs == before


@cases("query", [query for query in REFUSED if query.startswith("where=") or "=" in query[1:]][:12])
def test_nothing_is_asked_of_the_database_before_the_query_string_is_sound(things: Service, query: str) -> None:
    before = things.runs
    things.get(f"/items?{query}")
    assert things.runs == before


def test_an_unknown_row_in_a_filter_matches_nothing(shop: Service) -> None:
    for id in (NOBODY, "x", ANN.upper()):
        assert shop.rows(f"/posts?authorId={id}") == []
        assert shop.rows(f"/posts?authorId[in]={id}") == []
        assert len(shop.rows(f"/posts?authorId[ne]={id}")) == 6
