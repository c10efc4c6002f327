"""`diptych explain`: which rule decides about which row and field, and why; and nothing is changed by asking."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import diptych.demo.model
from diptych import Diptych
from diptych.demo import data as sample
from diptych.demo.model import model
from diptych.explain.text import WIDTH, lay, unwrapped, value_text
from tests.contract.http.data import ANN, BEN, COMMENT, NOBODY, ORDER, POST, ROWS
from tests.support.in_process import in_process
from tests.support.running import ROOT, Command, NewDatabase

TEAMS = """
from diptych import Claims, Model, Resource, Role, Tx, Viewer, action, allow, grant, inverse, may_read, none, some

keeper = Role("keeper")


class Asker(Viewer):
    tenant: str | None = None

    @classmethod
    def of(cls, claims: Claims) -> "Asker":
        return cls(id=claims.subject, roles=claims.roles, tenant=claims.get("tenant"))


class Person(Resource, plural="people"):
    name: str
    access = (grant("read"),)


class Team(Resource):
    name: str
    tenant: str
    members: "list[Member]" = inverse("team")
    tasks: "list[Task]" = inverse("team")

    @allow("read")
    def inside(self, viewer: Asker) -> bool:
        return some(self.members, lambda member: member.person.id == viewer.id) & (self.tenant == viewer.tenant)

    @allow(action="close")
    def nothing_open(self, viewer: Asker) -> bool:
        return none(self.tasks, lambda task: task.open)

    @action
    async def close(self, tx: Tx) -> "Team":
        return self


class Member(Resource):
    team: Team
    person: Person
    access = (grant("read"),)


class Task(Resource):
    team: Team
    title: str
    open: bool = True

    @allow("read")
    def of_team(self, viewer: Asker) -> bool:
        return may_read(self.team)


model = Model(Person, Team, Member, Task, viewer=Asker)
"""


@pytest.fixture(scope="module")
def filled(new_sqlite: NewDatabase) -> str:
    """A database of the default model, with rows that no test changes."""
    return fill(new_sqlite())


def fill(database: str) -> str:
    with asyncio.Runner() as runner, in_process(model, database, runner, ROWS):
        return database


Rows = Callable[..., str]


@pytest.fixture
def rows(command: Command, filled: str) -> Rows:
    """What a command tells from its last part on: of rows, with the rules at their places in the file."""

    def run(request: str, role: str, *options: str, database: str = filled) -> str:
        done = command("explain", request, "--as", role, "--database", database, *options)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert [line for line in re.split("\nRules\n", done.stdout)[-1].splitlines() if len(line) > WIDTH] == []
        return plain(done.stdout.rpartition("\nRows\n")[2])

    return run


def rules(done_stdout: str) -> str:
    return plain(done_stdout.rpartition("\nRules\n")[2])


def plain(text: str) -> str:
    return re.sub(r"model\.py:\d+", "model.py", text)


def shown(*lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines)


# rows


def test_a_row_is_told_with_the_rules_that_deny_it_and_the_values_that_they_saw(rows: Rows) -> None:
    assert rows(f"GET /posts/{POST[3]}", "signed_in", "--user", BEN) == shown(
        f"Post {POST[3]}: read: no",
        "    access (model.py)  read, update, delete to admin",
        "        no: the viewer is not admin",
        "    Post.published_or_own (model.py)  published or author.id = viewer.id",
        f'        no: published = false, author.id = "{ANN}",',
        f'          viewer.id = "{BEN}"',
    )


def test_a_row_that_can_be_read_is_told_with_what_allows_it(rows: Rows) -> None:
    said = rows(f'{{ post(id: "{POST[3]}") {{ title }} }}', "signed_in", "--user", ANN)
    assert said.splitlines()[0] == f"    Post {POST[3]}: read: yes"
    assert f'            yes: published = false, author.id = "{ANN}",' in said


def test_a_field_that_is_null_by_a_rule_is_told_of_its_row(rows: Rows) -> None:
    said = rows(f'{{ post(id: "{POST[1]}") {{ title author {{ name email }} }} }}', "signed_in", "--user", BEN)
    assert said.endswith(
        shown(
            f"    User {ANN}.email: read: no",
            "        ReadBy(admin) (model.py)",
            "            no: the viewer is not admin",
            "        User.own_email (model.py)  id = viewer.id",
            f'            no: id = "{ANN}",',
            f'              viewer.id = "{BEN}"',
        )
    )


def test_both_styles_tell_the_same(rows: Rows) -> None:
    one = rows(f"GET /posts/{POST[3]}?fields=title,author(email)", "staff", "--user", BEN)
    assert one == rows(f'{{ post(id: "{POST[3]}") {{ title author {{ email }} }} }}', "staff", "--user", BEN)


def test_both_stores_tell_the_same(rows: Rows, new_database: NewDatabase) -> None:
    other = fill(new_database())
    for request in (
        f"GET /posts/{POST[3]}",
        f"GET /users/{ANN}?fields=email,posts(title),orders(internalNote)",
        "GET /comments",
    ):
        told = rows(request, "staff", "--user", BEN)
        assert told == rows(request, "staff", "--user", BEN, database=other)
    body = json.dumps({"postId": POST[3], "authorId": ANN, "body": "x"})
    told = rows("POST /comments", "staff", "--user", BEN, "--body", body)
    assert told == rows("POST /comments", "staff", "--user", BEN, "--body", body, database=other)


@pytest.mark.parametrize("key", [NOBODY, "x"])
def test_an_id_that_no_row_has_is_told_as_such(key: str, rows: Rows) -> None:
    said = rows(f"GET /posts/{key}", "admin")
    assert said == shown(f"Post {key}: there is no such row" if key == NOBODY else "Post: no row has such an id")


def test_a_list_is_told_by_its_numbers_and_the_first_hidden_rows(rows: Rows) -> None:
    said = rows("GET /posts", "anonymous").splitlines()
    assert said[0] == "    posts: 8 match, and this viewer sees 6"
    assert [line for line in said if line.startswith("        Post ")] == [
        f"        Post {POST[number]}: read: no" for number in (3, 6)
    ]
    assert rows("GET /comments", "anonymous").splitlines()[0] == "    comments: 8 match, and this viewer sees 6"


def test_of_many_hidden_rows_three_are_told(rows: Rows) -> None:
    said = rows("GET /orders", "signed_in", "--user", NOBODY)
    assert said.splitlines()[0] == "    orders: 7 match, and this viewer sees 0"
    assert re.findall(r"Order (\S+): read: no", said) == ORDER[1:4]


def test_a_filter_that_sees_null_is_told_by_the_field(rows: Rows) -> None:
    said = rows("GET /users?email[contains]=ann", "signed_in", "--user", BEN)
    assert said.splitlines()[:2] == [
        "    users: 1 match, and this viewer sees 0",
        f"        User {ANN}.email: read: no",
    ]


def test_a_list_of_a_row_counts_its_own_rows(rows: Rows) -> None:
    said = rows(f"GET /users/{ANN}/posts", "signed_in", "--user", BEN)
    assert "posts of this User: 3 match, and this viewer sees 2" in said
    assert re.findall(r"Post (\S+): read: no", said) == [POST[3]]


# changes


def test_creating_as_someone_else_is_told_by_the_row_as_it_would_become(rows: Rows) -> None:
    body = json.dumps({"title": "a", "body": "b", "authorId": ANN, "published": True})
    said = rows("POST /posts", "signed_in", "--user", BEN, "--body", body)
    assert said.startswith(
        shown(
            "A new Post: create: no",
            "    Post.own (model.py)  author.id = viewer.id",
            f'        no: author.id = "{ANN}",',
            f'          viewer.id = "{BEN}"',
            "A new Post: read: yes",
        )
    )
    assert said.endswith("\nRefused FORBIDDEN: You may not do this.\n")


def test_a_reference_to_a_hidden_row_is_told_with_that_row(rows: Rows) -> None:
    mutation = "mutation ($in: CommentCreate!) { createComment(input: $in) { id } }"
    given = json.dumps({"in": {"postId": POST[3], "authorId": BEN, "body": "x"}})
    said = rows(mutation, "signed_in", "--user", BEN, "--variables", given)
    assert shown(f'postId = "{POST[3]}"', f"    Post {POST[3]}: read: no") in said
    assert said.endswith(
        "\nRefused CONFLICT: A reference leads to nothing.\n  variables.in.postId: there is nothing with this id\n"
    )


def test_a_reference_that_stays_is_not_told(rows: Rows) -> None:
    said = rows(f"PATCH /comments/{COMMENT[6]}", "signed_in", "--user", ANN, "--body", json.dumps({"postId": POST[4]}))
    assert "postId" not in said
    assert said.endswith("\nThe change would be made.\n")


def test_a_state_is_told_with_the_moves_that_lead_to_it(rows: Rows) -> None:
    said = rows(f"PATCH /orders/{ORDER[1]}", "signed_in", "--user", ANN, "--body", '{"status": "paid"}')
    assert (
        shown(
            f"Order {ORDER[1]}.status: become paid: no",
            "    States (model.py)  status = 'paid' already",
            '        no: status = "pending"',
            "    Move to paid (model.py)  status = 'pending', to staff",
            "        no: the viewer is not staff",
        )
        in said
    )
    assert said.endswith("\nRefused FORBIDDEN: You may not do this.\n")
    moved = rows(f"PATCH /orders/{ORDER[1]}", "staff", "--body", '{"status": "paid"}')
    assert moved.endswith("\nThe change would be made.\n")


def test_giving_a_row_away_is_told_by_the_row_as_it_would_become(rows: Rows) -> None:
    said = rows(f"PATCH /posts/{POST[3]}", "signed_in", "--user", ANN, "--body", json.dumps({"authorId": BEN}))
    assert f"    Post {POST[3]}: update: yes\n" in said
    assert f"    Post {POST[3]}, as it would become: update: no\n" in said
    assert f"    Post {POST[3]}, as it would become: read: no\n" in said


def test_a_replacement_may_give_back_what_may_not_be_changed(rows: Rows) -> None:
    row = {**ROWS["Order"][1], "total": "20.50", "note": "gift"}
    kept = {name: row[name] for name in ("customerId", "total", "currency", "note")}
    said = rows(
        f"PUT /orders/{ORDER[2]}", "signed_in", "--user", ANN, "--body", json.dumps({**kept, "status": "cancelled"})
    )
    assert said.endswith("\nThe change would be made.\n")
    assert "unchanged  it has the value that the viewer is shown" in said
    said = rows(f"PUT /orders/{ORDER[2]}", "signed_in", "--user", ANN, "--body", json.dumps({**kept, "note": "mine"}))
    assert f"    Order {ORDER[2]}.note: update: no\n" in said
    assert said.endswith("\nRefused FORBIDDEN: You may not do this.\n")


def test_deleting_tells_the_rules_of_deleting(rows: Rows) -> None:
    said = rows(f"DELETE /comments/{COMMENT[1]}", "signed_in", "--user", ANN)
    assert said.index(f"Comment {COMMENT[1]}: delete: yes") < said.index("Comment.under_own_post")
    assert said.endswith("\nThe change would be made.\n")


def test_nothing_is_changed_by_asking(rows: Rows, new_sqlite: NewDatabase) -> None:
    database = fill(new_sqlite())
    before = asyncio.run(dump(database))
    for request, body in (
        (f"DELETE /posts/{POST[1]}", ""),
        (f"PATCH /posts/{POST[1]}", '{"title": "other"}'),
        ("POST /users", '{"name": "Zed", "email": "z@example.com"}'),
    ):
        said = rows(request, "admin", *(["--body", body] if body else []), database=database)
        assert said.endswith("\nThe change would be made.\n"), said
    assert asyncio.run(dump(database)) == before


async def dump(database: str) -> list[Any]:
    app = Diptych(model, database=database)
    await app.start()
    try:
        session = await app.store.session(reading=True)
        found = [
            await session.rows(f'SELECT * FROM "{each.table}" ORDER BY id', ()) for each in model.resources.values()
        ]
        await session.end()
        return found
    finally:
        await app.stop()


# rules, without a database


def test_the_rules_are_told_without_a_database(command: Command) -> None:
    done = command("explain", "{ comments { body post { author { email } } } }", "--as", "staff")
    assert rules(done.stdout) == shown(
        "Comment: read: where post.published or post.author.id = viewer.id",
        "    Comment.post_readable (model.py)  may read post",
        "        here: post.published or post.author.id = viewer.id",
        "Post: read: where published or author.id = viewer.id",
        "    access (model.py)  read, update, delete to admin",
        "        never: the viewer is not admin",
        "    Post.published_or_own (model.py)  published or author.id = viewer.id",
        "User: read: always",
        "    access (model.py)  read to everyone",
        "        always: to everyone",
        "User.email: read: where id = viewer.id",
        "    ReadBy(admin) (model.py)",
        "        never: the viewer is not admin",
        "    User.own_email (model.py)  id = viewer.id",
    )


def test_a_hidden_field_is_told_with_what_hides_it(command: Command) -> None:
    done = command("explain", "{ orders { internalNote } }", "--as", "signed_in")
    assert done.stdout.startswith("Refused GRAPHQL_VALIDATION_FAILED: Cannot query field 'internalNote'")
    assert rules(done.stdout).endswith(
        shown(
            "Order.internalNote: read: never, so it does not exist for this viewer",
            "    ReadBy(staff) (model.py)",
            "        never: the viewer is not staff",
        )
    )
    other = command("explain", "GET /orders?fields=internalNote", "--as", "signed_in")
    assert rules(other.stdout) == rules(done.stdout)
    assert done.returncode == other.returncode == 0


@pytest.mark.parametrize(
    ("request_", "role", "told"),
    [
        ("{ orders { id } }", "anonymous", ["Refused UNAUTHENTICATED", "never: the viewer has no id"]),
        ("GET /orders", "anonymous", ["Refused UNAUTHENTICATED", "Order: read: never", "the viewer is not staff"]),
        ("GET /users/1/orders", "anonymous", ["Refused UNAUTHENTICATED", "Order: read: never"]),
        ("DELETE /orders/1", "staff", ["Refused FORBIDDEN", "Order: delete: never", "the viewer is not admin"]),
        ('mutation { deleteOrder(id: "1") { id } }', "staff", ["Refused FORBIDDEN", "Order: delete: never"]),
        ("POST /users", "staff", ["Refused FORBIDDEN", "User: create: never", "the viewer is not admin"]),
        ("GET /users?email=x", "anonymous", ["Refused BAD_REQUEST", "User.email: read: never, so it does not exist"]),
    ],
)
def test_what_others_may_do_is_told_with_what_forbids_it(
    request_: str, role: str, told: list[str], command: Command
) -> None:
    done = command("explain", request_, "--as", role)
    assert (done.returncode, done.stderr) == (0, "")
    for each in told:
        assert each in done.stdout


def test_a_hidden_field_that_is_given_is_told(command: Command) -> None:
    done = command("explain", f"PATCH /orders/{ORDER[1]}", "--as", "signed_in", "--body", '{"internalNote": "x"}')
    assert done.stdout.startswith("Refused BAD_USER_INPUT")
    assert shown(
        "Order.internalNote: update: never, so it does not exist for this viewer",
        "    WriteBy(staff) (model.py)",
        "        never: the viewer is not staff",
    ) in plain(done.stdout)


def test_a_scope_that_is_lacking_is_told(command: Command) -> None:
    done = command("explain", "{ users { name } posts { title } }", "--as", "admin", "--scope", "users:read")
    assert (
        shown("Post: read: never", "    scope  read or posts:read", "        never: of these the token has users:read")
        in done.stdout
    )


def test_a_change_is_told_with_its_guards_and_its_statement(command: Command) -> None:
    done = command("explain", f"PATCH /posts/{POST[1]}", "--as", "signed_in", "--body", '{"title": "x"}')
    assert "Guard  HIDDEN, the row as it is: published or author.id = viewer.id\n" in done.stdout
    assert "Guard  DENIED, the row as it is: author.id = viewer.id\n" in done.stdout
    for dialect in ("sqlite\n", "postgres\nWITH _w AS ("):
        assert f'\n{dialect}UPDATE "posts" AS _t0 SET "title" = ' in done.stdout
    made = command("explain", "POST /users", "--as", "admin", "--body", '{"name": "a", "email": "a@b"}')
    assert "Values ['a new id', 'a', 'a@b']\n" in made.stdout


def test_a_rule_is_told_with_its_place(command: Command) -> None:
    said = command("explain", "GET /posts", "--as", "staff").stdout
    source = Path(diptych.demo.model.__file__).read_text().splitlines()
    places = dict(re.findall(r"(access|Post\.\w+) \(model\.py:(\d+)\)", said))
    assert source[int(places["access"]) - 1].strip().startswith("access = ")
    assert "def published_or_own" in "".join(source[int(places["Post.published_or_own"]) - 1 :][:2])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--as", "anonymous", "--user", ANN], "An anonymous viewer has no token"),
        (["--as", "nobody"], "no role named 'nobody'"),
        (["--claims", "[]"], "--claims is not a JSON object"),
        (["--body", "{"], "--body is not JSON"),
        (["--database", "sqlite:///nowhere.db"], "There is no SQLite database at nowhere.db"),
        (["--database", "mysql://x"], "begins with 'mysql'"),
    ],
)
def test_what_cannot_be_explained_is_one_sentence(options: list[str], told: str, command: Command) -> None:
    done = command("explain", "GET /users", *options)
    assert done.returncode == 2
    assert told in done.stderr and done.stderr.count("\n") == 1
    assert not Path("nowhere.db").exists()


@pytest.mark.parametrize(
    ("request_line", "cause"),
    [
        ("{ posts(first: 101) { title } }", "  posts.first: expected a page size of at most 100, got 101"),
        ("GET /posts?first=101", "  query.first: expected a page size of at most 100, got 101"),
        ("GET /posts?offset=10001", "  query.offset: expected an offset of at most 10000, got 10001"),
        ("GET /posts?sort=id,title,createdAt,-updatedAt,version,body", "Refused TOO_COMPLEX: A sort has 6 keys"),
    ],
)
def test_what_a_limit_refuses_is_explained_and_said_to_be_refused(
    request_line: str, cause: str, command: Command
) -> None:
    lines = command("explain", request_line).stdout
    assert "\nRefused " in lines and cause in lines
    assert "\nsqlite\nSELECT" in lines
    assert "Refused" not in command("explain", "GET /posts?first=100").stdout


def test_the_limits_of_an_explained_request_are_those_of_the_settings(command: Command) -> None:
    for setting, sent in (
        ("DIPTYCH_MAX_OFFSET", "GET /posts?offset=10001"),
        ("DIPTYCH_MAX_PAGE", "GET /posts?first=101"),
    ):
        assert "\nRefused" in command("explain", sent).stdout
        assert "\nRefused" not in command("explain", sent, **{setting: "20000"}).stdout


def test_a_method_that_a_path_has_not_is_refused(command: Command) -> None:
    for request, told in (
        ("PUT /users", "PUT is no method of /users"),
        ("OPTIONS /users", "GET, POST, PUT"),
        ("/users", "'GET /users'"),
    ):
        assert told in command("explain", request).stderr


# rules about related rows, actions, and viewers of a model's own


@pytest.fixture
def teams(command: Command, new_database: NewDatabase) -> Iterator[Callable[..., str]]:
    Path("teams.py").write_text(TEAMS, "utf-8")
    assert command("check", "teams:model").returncode == 0
    declared = importlib.import_module("teams")
    rows = {
        "Person": [_row(1, name="Ann"), _row(2, name="Ben")],
        "Team": [_row(3, name="red", tenant="x")],
        "Member": [_row(4, teamId=_key(3), personId=_key(1))],
        "Task": [_row(5, teamId=_key(3), title="t", open=True), _row(6, teamId=_key(3), title="u", open=False)],
    }
    database = new_database()
    with asyncio.Runner() as runner, in_process(declared.model, database, runner, rows):
        pass

    def run(request: str, user: int, *options: str) -> str:
        asker = ("--as", "signed_in", "--user", _key(user), "--claims", '{"tenant": "x"}', *options)
        done = command("explain", request, "--model", "teams:model", "--database", database, *asker)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return re.sub(r"teams\.py:\d+", "teams.py", done.stdout.rpartition("\nRows\n")[2])

    yield run


def _key(number: int) -> str:
    return f"01900000-0000-7000-8000-{number:012}"


def _row(number: int, **values: Any) -> dict[str, Any]:
    moment = "2026-01-01T00:00:00.000000Z"
    return {"id": _key(number), "version": 1, "createdAt": moment, "updatedAt": moment, **values}


def test_a_rule_about_related_rows_tells_how_many_match(teams: Callable[..., str]) -> None:
    said = teams(f"GET /teams/{_key(3)}", 2)
    assert said == shown(
        f"Team {_key(3)}: read: no",
        "    Team.inside (teams.py)  some members (person.id = viewer.id) and tenant = viewer.tenant",
        '        no: 0 of 1 members match, tenant = "x", viewer.tenant = "x"',
    )
    mine = teams(f"GET /teams/{_key(3)}", 1)
    assert '            yes: 1 of 1 members match, tenant = "x", viewer.tenant = "x"\n' in mine


def test_a_rule_through_another_row_counts_there(teams: Callable[..., str]) -> None:
    said = teams(f"GET /tasks/{_key(5)}", 2)
    assert 'no: 0 of 1 team.members match, team.tenant = "x", viewer.tenant = "x"' in said


def test_a_rule_of_an_action_is_told(teams: Callable[..., str]) -> None:
    said = teams(f"POST /teams/{_key(3)}/close", 1)
    assert said.endswith(
        shown(
            f"Team {_key(3)}: close: no",
            "    Team.nothing_open (teams.py)  none tasks (open)",
            "        no: 1 of 2 tasks match",
        )
    )


def test_what_a_viewer_does_not_know_is_told(command: Command) -> None:
    Path("teams.py").write_text(TEAMS, "utf-8")
    done = command("explain", "GET /teams", "--model", "teams:model", "--as", "signed_in")
    assert "Refused FORBIDDEN" in done.stdout
    assert "never: the viewer has no tenant" in done.stdout


# the page


def test_the_page_shows_what_is_told(command: Command, new_sqlite: NewDatabase) -> None:
    page = (ROOT / "docs" / "reference" / "explaining.md").read_text("utf-8")
    shown_there = re.findall(r"```sh\n(diptych .+?)\n```\n\n```text\n(.+?)```", page, re.DOTALL)
    assert len(shown_there) == 4
    database = new_sqlite()
    asyncio.run(fill_with_samples(database))
    for line, text in shown_there:
        arguments = shlex.split(line.replace("sqlite:///diptych.db", database))[1:]
        pattern = ".*".join(map(re.escape, text.split("…")))
        assert re.fullmatch(pattern, command(*arguments).stdout, re.DOTALL), line


async def fill_with_samples(database: str) -> None:
    app = Diptych(model, database=database)
    await app.start()
    await sample.insert_sample(app.store, model)
    await app.stop()


# text


def test_values_are_cut_and_cannot_move_a_cursor() -> None:
    assert value_text("x" * 80) == '"' + "x" * 58 + "…"
    assert value_text("a\x1b[2J\u202eb\u00a0") == '"a\\u001b[2J\\u202eb\\u00a0"'
    assert value_text({"é": None}) == '{"é": null}'


def test_lines_are_cut_between_facts() -> None:
    facts = ", ".join(unwrapped(f"field {number} = {number * 10**9}") for number in range(9))
    lines = list(lay("no: " + facts, 2))
    assert len(lines) > 1 and all(len(line) <= WIDTH for line in lines)
    assert all(line.endswith(",") for line in lines[:-1])
