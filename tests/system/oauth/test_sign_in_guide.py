"""docs/how-to/sign-in.md runs: its app, and its provider for Auth.js, sign a user in."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from diptych.cli.records import run_on_store
from diptych.db.store import Store
from diptych.demo.data import FIRST_USER_ID
from diptych.identity.accounts import Accounts
from diptych.identity.revocation_list import RevocationList
from tests.support.running import JS, ROOT, Command, NewDatabase, free_port, node, served
from tests.system.oauth.flow import PASSWORD

PAGE = (ROOT / "docs" / "how-to" / "sign-in.md").read_text()
EMAIL = "ann@example.org"


async def add_account(store: Store, revoked: RevocationList) -> None:
    await Accounts(store, revoked).add(EMAIL, PASSWORD, (), FIRST_USER_ID)


def test_the_apps_of_the_guide_sign_a_user_in(new_sqlite: NewDatabase, command: Command, tmp_path: Path) -> None:
    app, provider = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "app.mjs").write_text(app)
    (tmp_path / "auth.mjs").write_text(provider)
    (tmp_path / "node_modules").symlink_to(JS / "node_modules")
    port = str(free_port())
    database = new_sqlite()
    with served(database, "--sample") as service:
        run_on_store({"database": database, "model": None}, add_account)
        (line,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
        words = shlex.split(line.replace("\\\n", "").replace(":3000", f":{port}"))[1:]
        words += ["--redirect", f"http://localhost:{port}/auth/callback/diptych", "--database", database]
        made = dict(each.split() for each in command(*words).stdout.splitlines())
        given = {
            "issuer": service.url,
            "id": made["client_id"],
            "secret": made["client_secret"],
            "port": port,
            "user": {"email": EMAIL, "password": PASSWORD},
        }
        found = json.loads(node("guide.mjs", str(tmp_path), given=json.dumps(given)))
        name = service.get(f"/users/{FIRST_USER_ID}").json()["name"]
    assert found["seen"] == f"Hello {name}; the API says 200."
    assert (found["done"], found["injected"]) == (303, 303), "a code without its session begins anew"
    assert (found["session"]["name"], found["session"]["email"]) == (name, EMAIL)
