"""`serve` tells nobody why a request is refused, whatever is set; `dev` tells an admin."""

from __future__ import annotations

from typing import Any

from tests.contract.http.data import NOBODY
from tests.support.running import NewDatabase, running, served


def test_no_setting_makes_a_service_tell(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    wishes: dict[str, Any] = {f"DIPTYCH_{name}": "1" for name in ("EXPLAIN", "DEV", "WHY", "ADD_COLUMNS")}
    with served(database, "--sample", **wishes) as service:
        assert "why" not in service.token_of("admin").get(f"/posts/{NOBODY}").json()
    with running("dev", database=database, noise="INFO") as service:
        admin = service.token_of("admin")
        assert admin.get(f"/posts/{NOBODY}").json()["why"] == [f"Post {NOBODY}: there is no such row"]
        assert "why" not in service.token_of("staff").get(f"/posts/{NOBODY}").json()
        assert "why" not in service.get(f"/posts/{NOBODY}").json()
