"""The sample data: the same everywhere, true to the default model, and like real data."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from diptych.db.sqlite.store import SqliteStore
from diptych.demo import data as sample
from diptych.demo.model import OrderStatus, model
from diptych.model.constraints import fault_of
from diptych.model.scalar_values import as_json
from tests.support.cases import cases

COMMON = ("id", "version", "createdAt", "updatedAt")
TABLES = {
    "User": (sample.users, (*COMMON, "name", "email")),
    "Post": (sample.posts, (*COMMON, "authorId", "title", "body", "published")),
    "Comment": (sample.comments, (*COMMON, "postId", "authorId", "body")),
    "Order": (
        sample.orders,
        (*COMMON, "customerId", "status", "total", "currency", "note", "internalNote"),
    ),
}
every_table = pytest.mark.parametrize("name", TABLES)


def rows(name: str) -> list[dict[str, Any]]:
    make, names = TABLES[name]
    return [dict(zip(names, row, strict=True)) for row in make()]


def filled() -> SqliteStore:
    async def run() -> SqliteStore:
        store = SqliteStore(":memory:")
        await store.open(model)
        await sample.insert_sample(store, model)
        await sample.insert_sample(store, model)
        return store

    return asyncio.run(run())


def test_an_empty_database_is_filled_once() -> None:
    store = filled()
    assert store._writer is not None
    count = store._writer.db.execute
    counts = [count(f"SELECT count(*) FROM {table}").get for table in ("users", "posts", "comments", "orders")]
    asyncio.run(store.close())
    assert counts == [40, 120, 300, 80]


@every_table
def test_every_value_is_canonical_and_fits_its_field(name: str) -> None:
    fields = model.resources[name].fields
    for row in rows(name):
        for key, value in row.items():
            field = fields[key]
            if value is None:
                assert field.nullable, (name, key)
            else:
                assert field.scalar.parse(as_json(value)) == value
                assert fault_of(value, field.constraints) == ""


@every_table
def test_an_id_is_a_uuid_7_of_the_moment_at_which_the_row_was_made(name: str) -> None:
    for row in rows(name):
        found = uuid.UUID(row["id"])
        moment = datetime.fromisoformat(row["createdAt"])
        assert (found.version, found.variant) == (7, uuid.RFC_4122)
        assert found.int >> 80 == int(moment.timestamp() * 1_000_000) // 1_000
        assert row["id"] == str(found)


@every_table
def test_ids_are_unique_and_stand_in_the_order_of_time(name: str) -> None:
    ids = [row["id"] for row in rows(name)]
    assert ids == sorted(set(ids))


@every_table
def test_a_row_of_version_1_was_never_changed_and_others_were(name: str) -> None:
    found = rows(name)
    assert {row["version"] for row in found} == {1, 2, 3}
    assert all((row["version"] == 1) == (row["updatedAt"] == row["createdAt"]) for row in found)
    assert all(row["updatedAt"] >= row["createdAt"] for row in found)


def test_mailboxes_are_unique_and_plain() -> None:
    mails = [row["email"] for row in rows("User")]
    assert len(set(mails)) == 40
    assert all(mail.isascii() and mail.endswith("@example.com") for mail in mails)
    assert {"ines.munoz@example.com", "niamh.osullivan@example.com", "lena.weiss@example.com"} <= set(mails)


def test_three_posts_in_four_are_published() -> None:
    assert Counter(row["published"] for row in rows("Post")) == {True: 90, False: 30}


def test_no_two_posts_have_the_same_title() -> None:
    assert len({row["title"] for row in rows("Post")}) == 120


def test_nothing_is_older_than_what_it_refers_to() -> None:
    made = {row["id"]: row["createdAt"] for name in TABLES for row in rows(name)}
    for name in ("Post", "Comment", "Order"):
        for row in rows(name):
            assert all(made[row[key]] < row["createdAt"] for key in row if key.endswith("Id"))


def test_orders_stand_in_every_state_with_and_without_notes() -> None:
    found = rows("Order")
    assert {row["status"] for row in found} == {status.value for status in OrderStatus}
    for key in ("note", "internalNote"):
        assert {row[key] is None for row in found} == {True, False}


@cases("part", ['"', "\\", "'", "🙂", "春", "я", "ك", "김", "<", "\n"])
def test_the_texts_hold_what_real_texts_hold(part: str) -> None:
    texts = [row["title"] + row["body"] for row in rows("Post")] + [row["body"] for row in rows("Comment")]
    assert any(part in text for text in texts)


def test_every_process_makes_the_same_rows() -> None:
    made = repr([make() for make, _ in TABLES.values()])
    assert hashlib.sha256(made.encode()).hexdigest()[:16] == "495a3cac38353b47"


def test_the_first_user_is_known_by_name() -> None:
    assert sample.FIRST_USER_ID == rows("User")[0]["id"] == "019b8d2b-8df7-7d8c-9078-cd43dac32e31"
