"""Renames that the model declares: values, stored changes, cursors and ETags are kept, and nothing is guessed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych import Model
from diptych.migrate.diff import Answers, difference
from diptych.migrate.renames import declared_renames, with_declared
from diptych.migrate.state import state_of
from tests.contract.migrate.scene import Project
from tests.support.in_process import in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

OLD = """
class Tag(Resource):
    word: str = "-"
    access = (grant("read", "create"),)

class Writer(Resource):
    name: str
    access = (grant("read", "create"),)

class Post(Resource):
    title: str
    writer: Writer | None = None
    rank: int = 0
    access = (grant("read", "create", "update"),)
"""
NEW = """
class Tag(Resource):
    term: Annotated[str, RenamedFrom("word")] = "-"
    access = (grant("read", "create"),)

class Author(Resource, renamed_from="Writer"):
    name: str
    access = (grant("read", "create"),)

class Article(Resource, renamed_from="Post"):
    headline: Annotated[str, RenamedFrom("title")]
    author: Annotated[Author | None, RenamedFrom("writer")] = None
    rank: int = 0
    access = (grant("read", "create", "update"),)
"""
JSON = {"content-type": "application/json"}


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_what_is_declared_is_renamed_with_all_that_is_there(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    old, new = model_of(OLD), model_of(NEW)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    with in_process(old, project.outside.url, runner) as service:
        writer = json.loads(service.send("POST", "/writers", headers=JSON, body=b'{"name": "Ann"}').body)
        posts = []
        for number in range(3):
            body = json.dumps({"title": f"t{number}", "writerId": writer["id"]}).encode()
            posts.append(json.loads(service.send("POST", "/posts", headers=JSON, body=body).body))
            if number == 0:
                cursor = service.changes("/posts/changes?fields=id")["page"]["last"]
        etag = service.send("GET", f"/posts/{posts[0]['id']}?fields=id,rank,version").headers["etag"]
        tags = [json.loads(service.send("POST", "/tags", headers=JSON, body=b"{}").body)["id"] for _ in range(2)]
        after = json.loads(service.send("GET", "/tags?first=1&fields=id").body)["page"]["next"]
    (first, made) = project.make(new)
    assert {type(step).__name__ for step in (*made.migration.expand, *made.migration.contract)} == {
        "rename_table",
        "rename_column",
    }
    assert first.name == "0001_first"
    project.apply(new)
    with in_process(new, project.outside.url, runner) as service:
        rows = json.loads(service.send("GET", "/articles?fields=id,headline,authorId").body)["data"]
        told = service.changes(f"/articles/changes?fields=headline,author(name)&after={cursor}")["data"]
        same = service.send(
            "GET", f"/articles/{posts[0]['id']}?fields=id,rank,version", headers={"if-none-match": etag}
        )
        page = json.loads(service.send("GET", f"/tags?first=1&fields=id&after={after}").body)["data"]
    assert rows == [
        {"id": post["id"], "headline": f"t{number}", "authorId": writer["id"]} for number, post in enumerate(posts)
    ]
    assert [each["article"] for each in told] == [
        {"headline": f"t{number}", "author": {"name": "Ann"}} for number in (1, 2)
    ]
    assert same.status == 304
    assert page == [{"id": tags[1]}]


def answered(model: Model, before: Model, **said: Any) -> dict[str, str]:
    answers = Answers(**said)
    return with_declared(answers, model, state_of(before)).renames


def test_a_declaration_counts_only_while_it_fits() -> None:
    old, new = model_of(OLD), model_of(NEW)
    assert declared_renames(new, state_of(old)) == {
        "tags.word": "term",
        "writers": "authors",
        "posts": "articles",
        "articles.title": "headline",
        "articles.writer_id": "author_id",
    }
    assert declared_renames(new, state_of(new)) == {}  # done already
    kept = NEW.replace("    rank: int = 0\n", '    rank: int = 0\n    title: str = "-"\n')
    assert "articles.title" not in declared_renames(model_of(kept), state_of(old))  # the old one is there too
    post = OLD[OLD.index("class Post") :].replace("    writer: Writer | None = None\n", "")
    assert "posts" not in declared_renames(model_of(NEW + post), state_of(old))
    assert answered(new, old, renames={"posts": "other"})["posts"] == "other"  # an option counts more


def test_without_a_declaration_it_is_a_question() -> None:
    plain = NEW.replace(', renamed_from="Writer"', "").replace(', renamed_from="Post"', "")
    bare = model_of(plain)
    found = difference(state_of(model_of(OLD)), state_of(bare), with_declared(Answers(), bare, state_of(model_of(OLD))))
    assert [question.kind for question in found.questions] == ["rename", "rename"]
    assert [str(step) for step in (*found.expand, *found.contract)] == [
        "rename_column(table='tags', old='word', new='term')"
    ]


def test_a_table_with_a_counter_that_the_database_never_had_is_renamed(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    counted = OLD.replace("rank: int = 0", "rank: Annotated[int, Counter()] = auto()")
    renamed = counted.replace("class Post(Resource)", 'class Article(Resource, renamed_from="Post")')
    project = Project(tmp_path / "migrations", new_database())
    for text in (OLD.replace("    rank: int = 0\n", ""), counted, renamed):
        project.make(model_of(text))
        if text is not counted:  # the two last migrations are applied together
            project.apply(model_of(text))
    project.open(model_of(renamed))
    for number in (1, 2):
        project.outside.sql(f"INSERT INTO articles (id, title) VALUES ('00000000-0000-7000-8000-{number:012}', 't')")
    assert project.outside.sql("SELECT rank FROM articles ORDER BY id") == [(1,), (2,)]


def test_the_webhooks_that_are_rows_follow_their_table(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    hook = "\nclass Hook(WebhookResource):\n    access = ()\n"
    old, new = (
        model_of(OLD + hook),
        model_of(OLD + hook.replace("Hook(WebhookResource)", "Link(WebhookResource, renamed_from='Hook')")),
    )
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)

    def webhooks(model: Model) -> list[tuple[str, str]]:
        with in_process(model, project.outside.url, runner) as service:
            runner.run(service.handler.webhooks.look())
        return [(source, url) for source, url in project.outside.sql("SELECT source, url FROM diptych_webhooks")]

    project.outside.sql(
        "INSERT INTO hooks (id, url, follows, owner) VALUES ('00000000-0000-7000-8000-000000000001', "
        "'https://example.org/a', 'posts', '00000000-0000-7000-8000-000000000002')"
    )
    assert webhooks(old) == [("hooks", "https://example.org/a")]
    project.make(new)
    project.apply(new)
    project.outside.sql("UPDATE links SET url = 'https://example.org/b'")
    assert webhooks(new) == [("links", "https://example.org/b")]
    project.outside.sql("DELETE FROM links")
    assert webhooks(new) == []


def test_the_webhooks_that_are_rows_go_with_their_table(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    with_hooks, without = model_of(OLD + "\nclass Hook(WebhookResource):\n    access = ()\n"), model_of(OLD)
    project = Project(tmp_path / "migrations", new_database())
    project.make(with_hooks, "first")
    project.apply(with_hooks)
    project.outside.sql(
        "INSERT INTO hooks (id, url, follows, owner) VALUES ('00000000-0000-7000-8000-000000000001', "
        "'https://example.org/a', 'posts', '00000000-0000-7000-8000-000000000002')"
    )
    with in_process(with_hooks, project.outside.url, runner) as service:
        runner.run(service.handler.webhooks.look())
    pending = "SELECT 'd', id, 1, 'r', 'pending', 1, 0, 0, '' FROM diptych_webhooks"
    project.outside.sql(f"INSERT INTO diptych_webhook_deliveries {pending}")
    project.make(without)
    project.apply(without, allow_loss=True)
    for table in ("diptych_webhooks", "diptych_webhook_deliveries"):
        assert project.outside.sql(f"SELECT id FROM {table}") == []


def test_a_file_whose_tables_all_get_other_names_is_copied_before(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    old, new = (
        model_of("class Post(Resource):\n    title: str\n"),
        model_of("class Article(Resource):\n    title: str\n"),
    )
    project = Project(tmp_path / "migrations", new_sqlite())
    project.make(old, "first")
    project.apply(old)
    assert not [said for said in project.told if "backup" in said], "it was new"
    project.make(new, renames={"posts": "articles"})
    project.apply(new)
    (said,) = [said for said in project.told if "backup" in said]
    copied = Outside(f"sqlite:///{said.removeprefix('A backup of the database is ').removesuffix('.')}")
    assert copied.sql("SELECT count(*) FROM posts") == [(0,)]
