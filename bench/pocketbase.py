"""The data of the PocketBase peer: its own SQLite file under `bench/.data/pocketbase`, with the same rows.

Its collections are made through its API, as its documentation says, open to all; the rows are put in by SQL. It cannot
hide a field of a row without a hook in JavaScript, so it holds only the email that the viewer may see. Its log of
requests is off. Commits do not wait for the disk (`synchronous=NORMAL` is what it sets).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import socket
import subprocess
import time
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from bench.cases import VIEWER
from bench.contenders import pocketbase
from bench.home import DATA
from bench.rows import COLUMNS, Table, Value, rows

HOME = DATA / "pocketbase"
FILE = HOME / "data.db"
STAMP = DATA / "pocketbase.stamp"
ACCOUNT = {"identity": "bench@example.org", "password": "not-a-secret-of-anyone"}
BATCH = 5_000
MADE = "0f[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
ID = {
    **{"name": "id", "type": "text", "primaryKey": True, "system": True, "required": True},
    **{"min": 36, "max": 36, "pattern": "^[0-9a-f-]+$", "autogeneratePattern": MADE},
}
TEXTS = {"people": ("name", "email"), "orders": ("status", "total", "currency", "note", "internalNote")}
CAMEL = {"created_at": "createdAt", "updated_at": "updatedAt", "customer_id": "customerId"}
CAMEL |= {"internal_note": "internalNote"}
# Ids of new orders begin with 0f; those of the data with 01.
DELETE = "DELETE FROM orders WHERE id > '0f'"


def ensure_pocketbase() -> None:
    """Makes and fills its file, unless a run before did."""
    here = Path(__file__).parent
    digest = hashlib.sha256((here / "pocketbase.py").read_bytes() + (here / "rows.py").read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == digest:
        return
    STAMP.unlink(missing_ok=True)
    shutil.rmtree(HOME, ignore_errors=True)
    call = [str(pocketbase()), "--dir", str(HOME), "--automigrate=false"]
    subprocess.run([*call, "superuser", "upsert", *ACCOUNT.values()], check=True, stdout=subprocess.DEVNULL, timeout=60)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    served = subprocess.Popen(
        [*call, "serve", "--http", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _make_collections(port)
    finally:
        served.terminate()
        served.wait(30)
    _fill("people", "users")
    _fill("orders", "orders")
    STAMP.write_text(digest)


def _call(port: int, method: str, path: str, body: object, token: str = "") -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        headers = {"Content-Type": "application/json", "Authorization": token}
        connection.request(method, path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"pocketbase answered {answer.status} to {path}: {text[:300]!r}")
        return json.loads(text)
    finally:
        connection.close()


def _token(port: int) -> str:
    end = time.monotonic() + 30
    while True:
        try:
            return str(_call(port, "POST", "/api/collections/_superusers/auth-with-password", ACCOUNT)["token"])
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _make_collections(port: int) -> None:
    token = _token(port)
    common = [ID, {"name": "version", "type": "number", "onlyInt": True}, _text("createdAt"), _text("updatedAt")]
    people: dict[str, object] = {"name": "people", "type": "base", "viewRule": ""}
    people["fields"] = [*common, *map(_text, TEXTS["people"])]
    made = _call(port, "POST", "/api/collections", people, token)
    customer = {"name": "customerId", "type": "relation", "collectionId": made["id"], "maxSelect": 1, "required": True}
    orders: dict[str, object] = {"name": "orders", "type": "base", "listRule": "", "viewRule": "", "createRule": ""}
    orders["fields"] = [*common, customer, *map(_text, TEXTS["orders"])]
    _call(port, "POST", "/api/collections", orders, token)
    _call(port, "PATCH", "/api/settings", {"logs": {"maxDays": 0}}, token)


def _text(name: str) -> dict[str, str]:
    return {"name": name, "type": "text"}


def _fill(collection: str, table: Table) -> None:
    names = [column.name for column in COLUMNS[table]]
    types = [column.type for column in COLUMNS[table]]
    columns = ", ".join(CAMEL.get(name, name) for name in names)
    insert = f"INSERT INTO {collection} ({columns}) VALUES ({', '.join('?' * len(names))})"
    stream = rows(table)
    connection = apsw.Connection(str(FILE))
    with connection:
        while batch := list(islice(stream, BATCH)):
            made = [
                tuple(
                    _value(name, kind, value, row[0] == VIEWER)
                    for name, kind, value in zip(names, types, row, strict=True)
                )
                for row in batch
            ]
            connection.executemany(insert, made)
    connection.execute("ANALYZE")
    connection.close()


def _value(name: str, kind: str, value: Value, own: bool) -> Any:
    if name == "email" and not own:
        return ""
    if kind == "datetime" and value is not None and not isinstance(value, str | int):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if kind == "decimal" and isinstance(value, int):
        return f"{value // 100}.{value % 100:02}"
    return "" if value is None else value


def remove_made() -> int:
    """Deletes the orders that were made since; how many."""
    connection = apsw.Connection(str(FILE))
    connection.set_busy_timeout(10_000)
    connection.execute(DELETE)
    made = connection.changes()
    connection.close()
    return made
