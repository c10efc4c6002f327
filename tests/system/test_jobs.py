"""Jobs of a real service: the model of the guide, its commands, and a shutdown while a job runs."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.effort import long_where
from tests.support.running import Client, NewDatabase, Service, diptych, served

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/jobs."""

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "background-jobs.md"
ANN = "01900000-0000-7000-8000-00000000000a"
SLOW = '''

class Oven(Resource):
    """It takes its time."""

    access = (grant("read"),)

    @action(background=True)
    @classmethod
    async def bake(cls, tx: JobTx, seconds: float) -> int:
        await asyncio.sleep(0.1 if tx.attempt > 1 else seconds)
        return tx.attempt

    @action(background=True)
    @classmethod
    async def burn(cls, tx: JobTx) -> int:
        raise Refusal(Code.CONFLICT, "It is burnt.")


model = Model(Contact, Oven)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (code,) = [
        block for block in re.findall(r"```python\n(.+?)```", PAGE.read_text(), re.DOTALL) if "class Contact" in block
    ]
    more = "import asyncio\n\nfrom diptych import Code, Refusal, grant\n"
    (tmp_path / "guide.py").write_text(f"from __future__ import annotations\n\n{more}{code}{SLOW}")
    return tmp_path


def ended(client: Client, path: str, seconds: float = 30.0) -> Any:
    end = time.monotonic() + seconds
    while True:
        job = client.get(path).json()
        if job["state"] in ("succeeded", "failed", "cancelled"):
            return job
        assert time.monotonic() < end, f"it did not end in time: {job}"
        time.sleep(0.05)


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.05)


def asked(service: Service, folder: Path) -> Client:
    made = diptych("token", "--database", service.database, "--user", ANN, "--model", "guide:model", cwd=folder)
    return service.signed_in(made.stdout.strip())


def test_the_guide_and_its_commands(folder: Path, new_database: NewDatabase) -> None:
    database = new_database()

    def jobs(*arguments: str) -> Any:
        return diptych("jobs", *arguments, "--database", database, "--model", "guide:model", cwd=folder)

    with served(database, model="guide:model", cwd=folder) as service:
        ann = asked(service, folder)
        answer = ann.post("/contacts/load", {"names": ["Ann", "Bob"]})
        assert answer.status == 202
        done = ended(ann, answer.headers["location"])
        assert (done["state"], done["result"], done["progressText"] in (None, "reading")) == ("succeeded", 2, True)
        burnt = ended(ann, ann.post("/ovens/burn", {}).headers["location"])
        assert (burnt["state"], burnt["errorCode"]) == ("failed", "CONFLICT")
        listed = jobs("list").stdout
        assert "loadContacts" in listed and "CONFLICT It is burnt." in listed
        assert jobs("list", "--state", "succeeded").stdout.count("\n") == 2
        assert jobs("retry", burnt["id"]).stdout == f"{burnt['id']} is queued.\n"
        again = f"/jobs/{burnt['id']}"
        until(lambda: ann.get(again).json()["finishedAt"] is not None)
        waits = ann.post("/ovens/bake", {"seconds": 600}).json()["id"]
        assert jobs("cancel", waits).stdout == f"{waits} is cancelled.\n"
        assert ann.get(f"/jobs/{waits}").json()["state"] == "cancelled"
        refused = jobs("cancel", waits)
        assert (refused.returncode, refused.stdout) == (2, "") and "ended already" in refused.stderr
        assert jobs("retry", "01900000-0000-7000-8000-00000000ffff").returncode == 2


def test_a_job_that_runs_at_shutdown_goes_on_at_the_next_start(folder: Path, new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with served(database, "--job-drain", "0.5", model="guide:model", cwd=folder) as service:
        ann = asked(service, folder)
        path = ann.post("/ovens/bake", {"seconds": 600}).headers["location"]
        quick = ann.post("/ovens/bake", {"seconds": 1.2}).headers["location"]
        until(lambda: ann.get(path).json()["state"] == ann.get(quick).json()["state"] == "running")
        begun = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(30)
        assert time.monotonic() - begun < 15
    with served(database, model="guide:model", cwd=folder) as service:
        late = Client(service.url, ann.token)
        assert late.get(path).json()["attempts"] == 1, "a release is no attempt"
        assert late.request("DELETE", path).status == 204
        assert late.get(path).json()["state"] == "cancelled"
