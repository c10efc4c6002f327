"""Lists as CSV and NDJSON, whole lists as a stream, and rows that are created from both."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable, Iterator
from time import process_time
from typing import Any

import pytest

from diptych import Model, Resource, grant
from diptych.identity.api_keys import ApiKeys
from diptych.identity.revocation_list import revocation
from diptych.serve.http.request import Request
from diptych.testing import Api, serve
from tests.contract.formats.every_type import MODEL, Maker, Thing, staff
from tests.support.running import NewDatabase

CSV, NDJSON = "text/csv", "application/x-ndjson"


@pytest.fixture(scope="module")
def api(new_database: NewDatabase) -> Iterator[Api]:
    with serve(MODEL, database=new_database(), max_export=250) as served:
        zoe = served.make(Maker, name="Zoe")
        served.make(Thing, text="=1+1", maker=zoe, note="", extra={"a": [1, None]}, count=-5, secret="s")
        served.make(Thing, text='a "quoted", text\r\nof two lines', ratio=0.1, good=True)
        served.make(Thing, text="hidden", hidden=True)
        yield served


async def nothing() -> None:
    """What happens while a client takes a page, mostly."""


def send(
    api: Api, method: str, url: str, body: bytes, meanwhile: Callable[[], Awaitable[object]] = nothing, **headers: str
) -> Any:
    """A request whose body is no JSON, and the whole of its answer."""

    async def read(most: int) -> bytes:
        return body

    async def work() -> tuple[int, dict[str, str], bytes]:
        sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        path, _, query = url.partition("?")
        reply = await api._handler.handle(Request(method, path, query, sent, read))
        parts = [reply.body]

        async def take(message: Any) -> None:
            parts.append(message.get("body", b""))
            await meanwhile()

        async def gone() -> Any:
            await asyncio.sleep(60)

        if reply.stream is not None:
            await reply.stream.drive(gone, take, None)
            reply.stream.close()
        return reply.status, {name.decode(): value.decode() for name, value in reply.headers}, b"".join(parts)

    return api._loop.run(work())


def token(api: Api, *roles: str) -> str:
    return dict(api.as_(*roles)._headers)["authorization"]


def test_a_page_as_csv_has_flat_columns(api: Api) -> None:
    status, headers, body = send(api, "GET", "/things?fields=text,note,count,extra,maker(name)", b"", accept=CSV)
    assert (status, headers["content-type"]) == (200, "text/csv; charset=utf-8; header=present")
    assert body.decode() == (
        "text,note,count,extra,maker.name\r\n"
        '\'=1+1,"",-5,"{""a"":[1,null]}",Zoe\r\n'
        '"a ""quoted"", text\r\nof two lines",,0,,\r\n'
    )
    rows = list(csv.reader(io.StringIO(body.decode(), newline="")))
    assert rows[2][0] == 'a "quoted", text\r\nof two lines'
    tag = headers["etag"]
    assert (
        send(api, "GET", "/things?fields=text,note,count,extra,maker(name)", b"", accept=CSV, if_none_match=tag)[0]
        == 304
    )
    first = send(api, "GET", "/things?fields=text&first=1", b"", accept=CSV)
    assert 'rel="next"' in first[1]["link"]


def test_a_page_as_ndjson_has_an_object_in_each_line(api: Api) -> None:
    status, headers, body = send(api, "GET", "/things?fields=text,maker(name)", b"", accept=f"{NDJSON}, */*;q=0.1")
    assert (status, headers["content-type"]) == (200, NDJSON)
    assert [json.loads(line) for line in body.splitlines()] == api.anonymous.get("/things?fields=text,maker(name)").data
    assert body.endswith(b"\n")


def test_the_case_of_a_media_type_does_not_count(api: Api) -> None:
    assert send(api, "GET", "/makers?fields=name", b"", accept="Text/CSV")[2] == b"name\r\nZoe\r\n"


def test_what_is_hidden_stays_hidden(api: Api) -> None:
    for first in ("", "&first=all"):
        allowed = {"authorization": token(api, "staff")} if first else {}
        _, _, body = send(api, "GET", f"/things?sort=text{first}", b"", nothing, accept=CSV, **allowed)
        head = body.decode().splitlines()[0].split(",")
        assert ("secret" in head) == bool(first)
        assert (b"hidden,,0" in body) == bool(first)


def test_lists_inside_rows_have_no_column(api: Api) -> None:
    status, _, body = send(api, "GET", "/makers?fields=name,things(text)", b"", accept=CSV)
    assert status == 400
    assert json.loads(body)["errors"][0]["message"] == "'things' is a list, which CSV has no column for"
    assert send(api, "GET", "/makers?fields=name,things(text)", b"", accept=NDJSON)[0] == 200


def test_numbers_of_related_rows_have_columns(api: Api) -> None:
    fields = "name,s:thingsSummary(n:count,text(min,distinct),ratio(max))"
    status, _, body = send(api, "GET", f"/makers?name=Zoe&fields={fields}", b"", accept=CSV)
    assert (status, body) == (200, b"name,s.n,s.text.min,s.text.distinct,s.ratio.max\r\nZoe,1,'=1+1,1,\r\n")


def test_other_paths_have_json_alone(api: Api) -> None:
    zoe = api.anonymous.get("/makers?name=Zoe").data[0]["id"]
    assert send(api, "GET", f"/makers/{zoe}", b"", accept=CSV)[0] == 406
    assert send(api, "GET", f"/makers/{zoe}/things?fields=text", b"", accept=CSV)[2] == b"text\r\n'=1+1\r\n"
    assert send(api, "GET", "/makers?first=all", b"", accept="application/json")[0] == 400
    for query in ("", "?first=all"):
        assert send(api, "GET", f"/viewer{query}", b"", accept=CSV, authorization=token(api, "staff"))[0] == 406


@pytest.mark.parametrize("media", [CSV, NDJSON])
def test_a_whole_list_is_read_by_pages(api: Api, media: str) -> None:
    made = [api.make(Maker, name=f"{media} {number:03}") for number in range(105)]
    url = f"/makers?first=all&fields=id,name&name[startsWith]={media}"
    status, headers, body = send(api, "GET", url, b"", accept=media)
    assert status == 200
    assert headers["cache-control"] == "no-store"
    assert headers["content-disposition"] == f'attachment; filename="makers.{"csv" if media == CSV else "ndjson"}"'
    if media == CSV:
        names = [row["name"] for row in csv.DictReader(io.StringIO(body.decode()))]
    else:
        names = [json.loads(line)["name"] for line in body.splitlines()]
    assert names == [maker.name for maker in made]
    assert send(api, "HEAD", url, b"", accept=media)[2] == b""
    assert api._handler.rest.export._running == 0


def test_whole_lists_are_for_those_who_may_export(api: Api) -> None:
    url = "/things?first=all&fields=text"
    assert send(api, "GET", url, b"", accept=CSV)[0] == 401
    assert send(api, "GET", url, b"", accept=CSV, authorization=token(api, "signed_in"))[0] == 403
    assert send(api, "GET", url, b"", accept=CSV, authorization=token(api, "staff"))[0] == 200
    assert send(api, "GET", url + "&offset=1", b"", accept=CSV, authorization=token(api, "staff"))[0] == 400
    for number in range(300):
        if number % 100 == 0:
            rows = [{"name": f"many {index:03}"} for index in range(number, number + 100)]
            api.anonymous.post("/makers", rows).expect(201)
    status, _, body = send(api, "GET", "/makers?first=all", b"", accept=CSV)
    problem = json.loads(body)
    assert (status, problem["code"], problem["allowed"]) == (400, "TOO_COMPLEX", 250)


def test_a_whole_list_ends_when_its_token_is_revoked(api: Api) -> None:
    context = api._handler.context
    keys = ApiKeys(context.store, context.revoked)
    for number in range(105):
        api.make(Maker, name=f"revoked {number:03}")
    _, key = api._loop.run(keys.add("Robot", None, ["staff"]))
    of_account = context.tokens.make(None, ["staff"], None, more={"account": "a1"})

    async def look_later() -> None:
        context._cache.clear()

    async def remove() -> None:
        if await keys.all():
            await keys.remove("Robot")

    async def revoke() -> None:
        await context.revoked.revoke(revocation("account", "a1"))

    cases: list[tuple[str, Callable[[], Awaitable[object]], int]] = [
        (key, nothing, 105),
        (key, look_later, 105),
        (key, remove, 100),
        (of_account, nothing, 105),
        (of_account, revoke, 100),
    ]
    for sent, meanwhile, rows in cases:
        url, bearer = "/makers?first=all&fields=name&name[startsWith]=revoked", f"Bearer {sent}"
        status, _, body = send(api, "GET", url, b"", meanwhile, accept=NDJSON, authorization=bearer)
        assert (status, len(body.splitlines())) == (200, rows), meanwhile
        assert api._handler.rest.export._running == 0


def test_rows_are_created_from_csv_and_ndjson(api: Api) -> None:
    body = 'text,note,count,good,extra,size\r\n\'=1+1,,-5,true,"{""a"":1}",large\r\n"","",,false,,small\r\n'
    status, _, answer = send(
        api, "POST", "/things?fields=text,note,count,good,extra,size", body.encode(), content_type=CSV
    )
    assert status == 201
    assert json.loads(answer) == [
        {"text": "=1+1", "note": None, "count": -5, "good": True, "extra": {"a": 1}, "size": "large"},
        {"text": "", "note": "", "count": 0, "good": False, "extra": None, "size": "small"},
    ]
    lines = b'{"text": "one"}\n\n{"text": "two", "count": 2}\n'
    status, _, answer = send(api, "POST", "/things?fields=text,count", lines, content_type=NDJSON)
    assert json.loads(answer) == [{"text": "one", "count": 0}, {"text": "two", "count": 2}]
    for marked, kind in ((b'{"text": "marked"}\n', NDJSON), (b"text\r\nmarked\r\n", CSV)):
        status, _, answer = send(api, "POST", "/things?fields=text", b"\xef\xbb\xbf" + marked, content_type=kind)
        assert (status, json.loads(answer)) == (201, [{"text": "marked"}]), "as programs on Windows write it"


def test_faults_name_their_lines_and_nothing_is_created(api: Api) -> None:
    body = b'text,count\r\n"a\r\nb",1\r\nc,many\r\n,2\r\n'
    status, _, answer = send(api, "POST", "/things", body, content_type=CSV)
    errors = json.loads(answer)["errors"]
    assert status == 422
    assert [error["pointer"] for error in errors] == ["/1/count", "/2/text"]
    assert [error["message"].partition(":")[0] for error in errors] == ["line 4", "line 5"]
    assert api.anonymous.get("/things?text=c").data == []
    cases = {
        b'text\r\n"open': "line 2: a quote is not closed",
        b'text\r\na"b\r\n': "line 2: a quote is not closed",
        b'text\r\na"b"\r\n': "line 2: a quote stands inside a cell without quotes",
        b"text,text\r\n": "line 1: the column 'text' occurs twice",
        b"text,count\r\na\r\n": "line 2: expected 2 cells, as in the header, got 1",
    }
    for bad, detail in cases.items():
        status, _, answer = send(api, "POST", "/things", bad, content_type=CSV)
        assert (status, json.loads(answer)["detail"]) == (400, f"The body is not valid: {detail}.")
    status, _, answer = send(api, "POST", "/things", b'{"text": 1', content_type=NDJSON)
    assert json.loads(answer)["detail"] == "The body is not valid: line 1: expected a JSON object."
    assert send(api, "POST", "/things", b"text\r\n" + b"a\r\n" * 101, content_type=CSV)[0] == 422
    assert send(api, "POST", "/things/batch", b"text\r\na\r\n", content_type=CSV)[0] == 415


def test_a_body_that_nobody_could_read_is_refused_at_once(api: Api) -> None:
    bodies = {
        b'text\r\n"' + b"\n" * 400_000: "line 2: a quote is not closed",
        b",".join(b"c%d" % number for number in range(100_000)) + b",c0": "line 1: the column 'c0' occurs twice",
    }
    for body, detail in bodies.items():
        begun = process_time()
        status, _, answer = send(api, "POST", "/things", body, content_type=CSV)
        assert (status, json.loads(answer)["detail"]) == (400, f"The body is not valid: {detail}.")
        assert process_time() - begun < 5
    rows = b"text\r\n" + b"a\r\n" * 101 + b'"'
    status, _, answer = send(api, "POST", "/things", rows, content_type=CSV)
    assert (status, json.loads(answer)["errors"][0]["message"]) == (422, "expected 1 to 100 rows, got more")


def test_the_order_of_checks_is_that_of_a_body_in_json(new_database: NewDatabase) -> None:
    class Book(Resource):
        name: str
        access = (grant("read", "create", to=staff),)

    bodies = {b'name\r\n"open': 400, b"\xff": 400, b"name\r\n" + b"a\r\n" * 101: 401, b"": 401}
    with serve(Model(Book), database=new_database()) as served:
        answers = [send(served, "POST", "/books", body, content_type=CSV)[0] for body in bodies]
    assert answers == [*bodies.values()]
