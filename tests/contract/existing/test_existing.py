"""Tables that others made are served as they are, in both styles and on both stores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.ask.cursor import row_version
from diptych.config import Config
from diptych.db.connect import connect
from diptych.errors import StartError
from tests.contract.existing.chinook import MODEL
from tests.support.existing import catalogue_of, make_existing, run_sql
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture
def service(new_database: NewDatabase) -> Iterator[Service]:
    database = make_existing(new_database(), "chinook")
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        yield service


def send(service: Service, method: str, url: str, body: Any = None, **headers: str) -> Answer:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    data = b"" if body is None else json.dumps(body).encode()
    return service.send(method, url, body=data, headers=sent, token=service.token(None, "admin"))


def test_reads(service: Service) -> None:
    document = """{ artists(where: {name: {eq: "AC/DC"}}) { id name albums { id title } }
      track(id: "1") { name album { title artist { name } } playlists { name } genre { name } }
      albumLengths { id title tracks } playlistTracks { id track { name } } }"""
    assert service.data(document) == {
        "artists": [{"id": "1", "name": "AC/DC", "albums": [{"id": "1", "title": "Rock"}]}],
        "track": {
            "name": "Go",
            "album": {"title": "Rock", "artist": {"name": "AC/DC"}},
            "playlists": [{"name": "Mine"}],
            "genre": {"name": "Rock"},
        },
        "albumLengths": [
            {"id": "1", "title": "Rock", "tracks": 2},
            {"id": "2", "title": "balls", "tracks": 0},
            {"id": "3", "title": "Żal", "tracks": 0},
            {"id": "4", "title": "apples", "tracks": 0},
        ],
        "playlistTracks": [
            {"id": "1,1", "track": {"name": "Go"}},
            {"id": "1,2", "track": {"name": "Stop"}},
            {"id": "2,2", "track": {"name": "Stop"}},
        ],
    }
    listed = service.get("/tracks?fields=name,album(title)&sort=-name&first=2").json()
    assert listed["data"] == [{"name": "Wait", "album": None}, {"name": "Stop", "album": {"title": "Rock"}}]


def test_text_is_in_the_order_of_its_characters(service: Service) -> None:
    """Whatever the collation of the database: sorted, compared, and paged."""
    admin = service.token(None, "admin")
    titles, url = [], "/albums?fields=title&sort=title&first=1"
    for _ in range(4):
        page = service.get(url, token=admin).json()
        titles += [row["title"] for row in page["data"]]
        after = page["page"]["endCursor"] if "endCursor" in page["page"] else page["page"]["next"]
        url = f"/albums?fields=title&sort=title&first=1&after={after}"
    assert titles == ["Rock", "apples", "balls", "Żal"]
    assert [row["title"] for row in service.get("/albums?fields=title").json()["data"]] == ["Rock"]


def test_writes(service: Service) -> None:
    made = send(service, "POST", "/albums?fields=id,title,artistId,version", {"title": "New", "artistId": "2"})
    assert made.status == 201, made.body
    row = made.json()
    assert (row["id"], row["title"], row["artistId"]) == ("5", "New", "2")
    assert made.headers["location"] == "/albums/5"
    changed = send(
        service, "PATCH", "/albums/5?fields=title,version", {"title": "Newer"}, if_match=made.headers["etag"]
    )
    assert changed.status == 200, changed.body
    assert changed.json()["title"] == "Newer"
    stale = send(service, "PATCH", "/albums/5", {"title": "Newest"}, if_match=made.headers["etag"])
    assert stale.status == 412, stale.body
    assert send(service, "PATCH", "/albums/5", {}).status == 200
    assert send(service, "DELETE", "/albums/5", if_match=changed.headers["etag"]).status == 204
    assert service.get("/albums/5").status == 404
    missing = send(service, "POST", "/albums", {"title": "New", "artistId": "99"})
    assert (missing.status, missing.places) == (409, ["/artistId"])
    taken = send(service, "POST", "/genres", {"name": "Rock"})
    assert (taken.status, taken.places) == (409, ["/name"])


def test_a_junction_table_is_a_relation_of_many_to_many(service: Service) -> None:
    """It is written by links, though its key has two columns and it has no id of its own."""
    token = service.token(None, "admin")
    document = """mutation { updatePlaylist(id: "2", patch: {name: "Ours", tracks: {connect: [{id: "1"}]}}) {
      name tracks { id } } }"""
    assert service.data(document, token=token)["updatePlaylist"] == {
        "name": "Ours",
        "tracks": [{"id": "1"}, {"id": "2"}],
    }
    assert send(service, "PUT", "/playlists/1/tracks/3").status in (201, 204)
    assert send(service, "DELETE", "/playlists/1/tracks/1").status == 204
    assert [row["id"] for row in service.get("/playlists/1/tracks?fields=id").json()["data"]] == ["2", "3"]


def test_a_deletion_does_what_the_database_does(service: Service) -> None:
    assert send(service, "DELETE", "/artists/1").status == 204
    assert service.get("/tracks/1?fields=name,album(title)").json() == {"name": "Go", "album": None}
    refused = send(service, "DELETE", "/genres/1")
    assert (refused.status, refused.code) == (409, "CONFLICT")


def test_rules_and_groups(service: Service) -> None:
    """A rule is a part of the statement, as everywhere."""
    assert service.data("{ albums { title } albumsSummary { count } }") == {
        "albums": [{"title": "Rock"}],
        "albumsSummary": {"count": 1},
    }
    assert service.get("/albums/2").status == 404
    groups = service.get("/tracks/groups?by=genreId&sort=genreId").json()["data"]
    assert [(group["genreId"]["value"], group["count"]) for group in groups] == [("1", 1), ("2", 1), (None, 1)]


def test_a_table_of_our_own_beside_them(service: Service) -> None:
    made = send(service, "POST", "/notes?fields=text,album(title)", {"text": "good", "albumId": "1"})
    assert (made.status, made.json()) == (201, {"text": "good", "album": {"title": "Rock"}}), made.body
    assert send(service, "POST", "/notes", {"text": "bad", "albumId": "77"}).status == 409
    assert service.get("/notes/changes").json()["data"][0]["kind"] == "CREATED"


def test_nothing_of_theirs_is_changed(new_database: NewDatabase) -> None:
    """Neither tables nor triggers: what the catalogue says of them is the same after the service was there."""
    database = make_existing(new_database(), "chinook")
    before = catalogue_of(database)
    with asyncio.Runner() as runner, in_process(MODEL, database, runner):
        pass
    after = [line for line in catalogue_of(database) if not any(own in str(line) for own in ("diptych", "notes"))]
    assert after == before


SENTENCES = {
    'ALTER TABLE "Track" RENAME COLUMN "Composer" TO "Writer"': None,
    'ALTER TABLE "Track" RENAME COLUMN "Milliseconds" TO "Length"': "the column Track.Milliseconds is missing",
    'ALTER TABLE "Genre" RENAME TO "Kind"': "the table Genre is missing",
    'DROP VIEW "AlbumLength"': "the view AlbumLength is missing",
}


@pytest.mark.parametrize("change", SENTENCES)
def test_a_database_that_does_not_fit_is_refused(new_database: NewDatabase, change: str) -> None:
    database = make_existing(new_database(), "chinook")
    run_sql(database, change)
    store = connect(Config(database=database))

    async def opened() -> None:
        await store.open(MODEL)
        await store.close()

    sentence = SENTENCES[change]
    if sentence is None:
        asyncio.run(opened())
        return
    with pytest.raises(StartError, match=sentence):
        asyncio.run(opened())


def test_many_rows_in_one_request(service: Service) -> None:
    """The database makes their ids, also where rows of one kind are sent together."""
    rows = [{"title": f"T{number}", "artistId": "1"} for number in range(3)]
    made = send(service, "POST", "/albums?fields=id,title", rows)
    assert made.status == 201, made.body
    assert [(row["id"], row["title"]) for row in made.json()] == [("5", "T0"), ("6", "T1"), ("7", "T2")]
    document = """mutation { a: createGenre(input: {name: "A"}) { id name } b: createGenre(input: {name: "B"}) { id name }
      createArtist(input: {name: "C", albums: {create: [{title: "D"}, {title: "E"}]}}) { albums { title } } }"""
    data = service.data(document, token=service.token(None, "admin"))
    assert (data["a"], data["b"]) == ({"id": "3", "name": "A"}, {"id": "4", "name": "B"})
    assert data["createArtist"] == {"albums": [{"title": "D"}, {"title": "E"}]}


def test_a_version_tells_nothing_of_the_columns_that_it_is_made_of(service: Service) -> None:
    """Whoever may see all fields but one could else try values of that one until the digest is the same."""
    (row,) = service.get("/artists?name=AC/DC&fields=version").json()["data"]
    for text in ("1,'AC/DC'", "'1','AC/DC'"):  # as SQLite and PostgreSQL quote them
        assert row["version"] != row_version(text.encode())
    assert service.get("/artists/1?fields=version").json() == row
