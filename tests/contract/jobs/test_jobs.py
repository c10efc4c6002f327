"""Jobs: background actions in both styles, on both stores, from the call to the result."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.db.job_queue import NEVER, QUEUE, QueuedJob
from diptych.errors import Refusal
from diptych.explain.understood import RestRequest, understand
from diptych.identity.accounts import Accounts
from diptych.identity.api_keys import ApiKeys
from diptych.jobs import manage, retention, run, service
from diptych.jobs.service import JobService
from diptych.model.declare.job_resource import JobState
from tests.contract.calls.press import model as press
from tests.contract.jobs.bindery import ANN, BOB, BOOK, GATE, ROWS, TRIES, model
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "REPORTED_EVERY", 0.02)
    GATE.clear()
    TRIES.clear()


@pytest.fixture
def bindery(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(model, new_database(), runner, ROWS, job_drain=0.0) as service:
        yield service


def post(service: Service, url: str, body: Any = None, token: str | None = None, **headers: str) -> Answer:
    given = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    raw = b"" if body is None else json.dumps(body).encode()
    return service.send("POST", url, headers=given, body=raw, token=token)


def jobs(service: Service) -> JobService:
    assert service.handler.jobs is not None
    return service.handler.jobs


async def _settled(jobs: JobService, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await jobs.look()
        left = [record for record in await QUEUE.all(jobs.store, "id") if record.next_at < NEVER]
        if not jobs._running and not left:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the jobs did not end in time")


def settle(service: Service, seconds: float = 20.0) -> None:
    """Run all jobs to their ends."""
    service.runner.run(_settled(jobs(service), seconds))


def spin(service: Service, seconds: float = 0.1) -> None:
    """Look at the queue once, and let the loop run for a while."""

    async def spinning() -> None:
        await jobs(service).look()
        await asyncio.sleep(seconds)

    service.runner.run(spinning())


def runs(service: Service, id: str, token: str, seconds: float = 20.0) -> Any:
    """The job once its function waits, however slow the machine is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        spin(service, 0.05)
        shown = job(service, id, token)
        if shown["state"] == "running" and shown["progressText"] == "waits":
            return shown
    raise AssertionError(f"it did not run in time: {shown}")


def records(service: Service) -> list[QueuedJob]:
    return service.runner.run(QUEUE.all(service.app.store, "id"))


def job(service: Service, id: str, token: str) -> Any:
    return service.get(f"/jobs/{id}", token=token).json()


def titles(service: Service) -> list[str]:
    return sorted(row["title"] for row in service.rows("/books", token=service.token(None, "binder")))


def tried(service: Service, how: str, token: str, **more: Any) -> str:
    answer = post(service, "/books/try-out", {"how": how, **more}, token)
    assert answer.status == 202
    return str(answer.json()["id"])


def test_a_call_is_queued_and_answered_at_once(bindery: Service) -> None:
    ann = bindery.token(ANN)
    answer = post(bindery, f"/books/{BOOK}/bind", {"pages": 7, "note": "Faust II"}, ann)
    queued = answer.json()
    assert (answer.status, answer.headers["location"]) == (202, f"/jobs/{queued['id']}")
    assert (queued["state"], queued["action"], queued["progress"], queued["attempts"]) == ("queued", "bindBook", 0, 0)
    assert bindery.get(f"/books/{BOOK}?fields=pages", token=ann).json() == {"pages": 0}
    settle(bindery)
    ended = job(bindery, queued["id"], ann)
    assert (ended["state"], ended["progress"], ended["attempts"]) == ("succeeded", 1, 1)
    assert ended["startedAt"] and ended["finishedAt"] and ended["errorCode"] is None
    assert ended["result"] == bindery.get(f"/books/{BOOK}", token=ann).json()
    assert (ended["result"]["title"], ended["result"]["pages"]) == ("Faust II", 7)
    assert records(bindery) == [], "what has ended is not in the queue any more"


def test_the_same_in_graphql(bindery: Service) -> None:
    ann = bindery.token(ANN)
    asked = f'mutation {{ bindBook(id: "{BOOK}", pages: 3) {{ id state no: attempts }} }}'
    queued = bindery.data(asked, token=ann)["bindBook"]
    assert (queued["state"], queued["no"]) == ("queued", 0)
    settle(bindery)
    query = "query($id: ID!) { job(id: $id) { state result action } jobs(first: 5) { id } }"
    data = bindery.data(query, {"id": queued["id"]}, token=ann)
    assert (data["job"]["state"], data["job"]["result"]["pages"]) == ("succeeded", 3)
    assert data["job"]["result"] == job(bindery, queued["id"], ann)["result"]
    assert data["jobs"] == [{"id": queued["id"]}]


def test_arguments_and_rows_are_checked_before_anything_is_queued(bindery: Service) -> None:
    ann = bindery.token(ANN)
    assert post(bindery, f"/books/{BOOK}/bind", {"pages": 0}, ann).places == ["/pages"]
    assert post(bindery, f"/books/{BOOK}/bind", {}, ann).status == 422
    assert post(bindery, f"/books/{BOOK}/bind", {"pages": 1}, bindery.token(BOB)).status == 404
    assert post(bindery, f"/books/{BOOK}/bind", {"pages": 1}).status == 401
    assert post(bindery, "/books/try-out", {"how": "well"}, bindery.token(None)).status == 403, (
        "it could not see its job"
    )
    assert records(bindery) == []


def test_a_call_that_is_rolled_back_leaves_no_job(bindery: Service) -> None:
    asked = f'mutation {{ bindBook(id: "{BOOK}", pages: 3) {{ id }} updateBook(id: "{BOB}", patch: {{}}) {{ id }} }}'
    assert bindery.query(asked, token=bindery.token(ANN)).code == "NOT_FOUND"
    assert records(bindery) == [] and bindery.rows("/jobs", token=bindery.token(ANN)) == []


def test_jobs_are_seen_by_those_who_asked_alone(bindery: Service) -> None:
    ann, bob = bindery.token(ANN), bindery.token(BOB)
    mine, theirs = tried(bindery, "well", ann), tried(bindery, "well", bob)
    settle(bindery)
    assert [row["id"] for row in bindery.rows("/jobs", token=ann)] == [mine]
    assert bindery.get(f"/jobs/{theirs}", token=ann).status == 404
    assert bindery.data(f'{{ job(id: "{theirs}") {{ id }} }}', token=ann) == {"job": None}
    assert bindery.send("DELETE", f"/jobs/{theirs}", token=ann).status == 404
    assert bindery.query(f'mutation {{ cancelJob(id: "{theirs}") {{ id }} }}', token=ann).code == "NOT_FOUND"
    assert bindery.get("/jobs").status == 401
    for method in ("PUT", "PATCH"):
        assert bindery.send(method, f"/jobs/{mine}", body=b"{}", token=ann).status == 405
    assert post(bindery, "/jobs", {"action": "x"}, ann).status == 405


def test_jobs_are_listed_in_pages(bindery: Service) -> None:
    ann = bindery.token(ANN)
    made = [tried(bindery, "well", ann) for _ in range(5)]
    first = bindery.get("/jobs?first=3&fields=id", token=ann).json()
    rest = bindery.get(f"/jobs?first=3&fields=id&after={first['page']['next']}", token=ann).json()
    assert [row["id"] for row in first["data"] + rest["data"]] == sorted(made)
    assert bindery.rows("/jobs?state=queued&first=100", token=ann).__len__() == 5


def test_an_idempotency_key_gives_the_same_job(bindery: Service) -> None:
    ann = bindery.token(ANN)
    answers = [post(bindery, "/books/try-out", {"how": "well"}, ann, idempotency_key="k1") for _ in range(3)]
    assert {(answer.status, answer.json()["id"], answer.headers["location"]) for answer in answers} == {
        (202, answers[0].json()["id"], answers[0].headers["location"])
    }
    settle(bindery)
    assert len(bindery.rows("/jobs", token=ann)) == 1 and TRIES == [1]


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("refuse", "CONFLICT", "Not on a Sunday."),
        ("fault", "BAD_USER_INPUT", "how: it is at fault"),
        ("break", "INTERNAL", "Something went wrong."),
    ],
)
def test_a_job_that_fails_says_why_and_changes_nothing(
    bindery: Service, how: str, code: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    ann = bindery.token(ANN)
    with caplog.at_level(logging.CRITICAL, "diptych"):
        id = tried(bindery, how, ann)
        settle(bindery)
    ended = job(bindery, id, ann)
    assert (ended["state"], ended["errorCode"], ended["attempts"]) == ("failed", code, 1)
    assert ended["errorMessage"].startswith(message) and "tiger" not in ended["errorMessage"]
    assert ended["result"] is None and ended["finishedAt"]
    assert titles(bindery) == ["Faust"]


def test_exceptions_that_say_so_are_tried_again(bindery: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.jobs.run.BACKOFF.first", 0.001)
    ann = bindery.token(ANN)
    once = tried(bindery, "retry", ann, data={"a": [1, "é", None]})
    settle(bindery)
    assert TRIES == [1, 2, 3]
    ended = job(bindery, once, ann)
    assert (ended["state"], ended["attempts"], ended["errorMessage"]) == ("succeeded", 3, None)
    assert ended["result"] == {"how": "retry", "data": {"a": [1, "é", None]}, "attempt": 3}
    assert titles(bindery) == ["Faust", "retry 3"], "of attempts that failed nothing is kept"


def test_the_number_of_attempts_is_bounded(
    bindery: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("diptych.jobs.run.BACKOFF.first", 0.001)
    ann = bindery.token(ANN)
    id = tried(bindery, "connect", ann)

    async def patiently() -> None:
        for _ in range(500):
            await jobs(bindery).look()
            await asyncio.sleep(0.01)
            if len(TRIES) == 3 and not jobs(bindery)._running:
                return

    with caplog.at_level(logging.CRITICAL, "diptych"):
        bindery.runner.run(patiently())
    ended = job(bindery, id, ann)
    assert (ended["state"], ended["attempts"], ended["errorCode"]) == ("failed", 3, "INTERNAL")
    assert TRIES == [1, 2, 3]


def test_a_job_has_a_maximum_run_time(bindery: Service) -> None:
    ann = bindery.token(ANN)
    id = str(post(bindery, "/books/dawdle", None, ann).json()["id"])
    settle(bindery)
    assert (job(bindery, id, ann)["state"], job(bindery, id, ann)["errorCode"]) == ("failed", "TIMEOUT")


def test_a_checkpoint_commits_and_the_next_attempt_goes_on_from_it(bindery: Service) -> None:
    ann = bindery.token(ANN)
    id = str(post(bindery, "/books/count", None, ann).json()["id"])
    settle(bindery)
    assert (job(bindery, id, ann)["state"], job(bindery, id, ann)["result"]) == ("succeeded", 3)
    assert titles(bindery) == ["Faust", "step 0", "step 1", "step 2"]


def test_a_list_is_what_the_caller_may_read(bindery: Service) -> None:
    ann, bob = bindery.token(ANN), bindery.token(BOB)
    ids = [str(post(bindery, "/books/all", None, token).json()["id"]) for token in (ann, bob)]
    settle(bindery)
    assert [row["title"] for row in job(bindery, ids[0], ann)["result"]] == ["Faust"]
    assert job(bindery, ids[1], bob)["result"] == []


def test_progress_is_seen_while_it_runs(bindery: Service) -> None:
    ann = bindery.token(ANN)
    id = tried(bindery, "wait", ann)
    running = runs(bindery, id, ann)
    assert (running["state"], running["progress"], running["progressText"]) == ("running", 0.25, "waits")
    bindery.runner.get_loop().call_soon(GATE.set)
    settle(bindery)
    assert job(bindery, id, ann)["progress"] == 1


@pytest.mark.parametrize("style", ["rest", "graphql"])
@pytest.mark.parametrize("is_running", [False, True])
def test_a_job_can_be_cancelled(
    bindery: Service, style: str, is_running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LEASE", 2.0)
    ann = bindery.token(ANN)
    id = tried(bindery, "wait", ann)
    if is_running:
        runs(bindery, id, ann)
    if style == "rest":
        answer = bindery.send("DELETE", f"/jobs/{id}", token=ann)
        assert (answer.status, answer.body) == (204, b"")
    else:
        asked = f'mutation {{ cancelJob(id: "{id}") {{ state }} }}'
        assert bindery.data(asked, token=ann) == {"cancelJob": {"state": "cancelled"}}
    ended = job(bindery, id, ann)
    assert (ended["state"], bool(ended["finishedAt"])) == ("cancelled", True)
    bindery.runner.get_loop().call_soon(GATE.set)
    settle(bindery)
    assert job(bindery, id, ann)["state"] == "cancelled"
    assert titles(bindery) == (["Faust", "wait 1"] if is_running else ["Faust"]), "only its checkpoint is kept"
    again = bindery.send("DELETE", f"/jobs/{id}", token=ann)
    assert (again.status, again.code) == (409, "CONFLICT")


def test_a_run_notices_that_its_job_was_cancelled(bindery: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "LEASE", 2.0)
    ann = bindery.token(ANN)
    id = tried(bindery, "wait", ann)
    runs(bindery, id, ann)
    bindery.send("DELETE", f"/jobs/{id}", token=ann)
    end = time.monotonic() + 20
    while jobs(bindery)._running and time.monotonic() < end:
        spin(bindery, 0.05)
    assert not jobs(bindery)._running


def test_the_rules_are_those_of_the_account_when_it_runs(bindery: Service) -> None:
    store, context = bindery.app.store, bindery.handler.context
    accounts = Accounts(store, context.revoked)
    account = bindery.runner.run(accounts.add("ann@example.org", "a long password", ["binder"], ANN))
    claims = {"account": account.id}
    token = context.tokens.make(ANN, ["binder"], None, 900, claims)
    ids = [str(post(bindery, "/books/all", None, token).json()["id"]) for _ in range(2)]
    settle(bindery)
    assert job(bindery, ids[0], bindery.token(ANN))["state"] == "succeeded"
    later = str(post(bindery, "/books/all", None, token).json()["id"])
    bindery.runner.run(accounts.disable("ann@example.org"))
    settle(bindery)
    ended = job(bindery, later, bindery.token(ANN))
    assert (ended["state"], ended["errorCode"]) == ("failed", "UNAUTHENTICATED")


def test_an_api_key_that_is_removed_ends_its_jobs(bindery: Service) -> None:
    keys = ApiKeys(bindery.app.store, bindery.handler.context.revoked)
    _, text = bindery.runner.run(keys.add("ci", ANN, ["binder"]))
    id = str(post(bindery, "/books/all", None, text).json()["id"])
    bindery.runner.run(keys.remove("ci"))
    settle(bindery)
    assert job(bindery, id, bindery.token(ANN))["errorCode"] == "UNAUTHENTICATED"


def test_a_role_that_was_lost_ends_a_call_that_needs_it(bindery: Service) -> None:
    accounts = Accounts(bindery.app.store, bindery.handler.context.revoked)
    account = bindery.runner.run(accounts.add("bob@example.org", "a long password", ["binder"], BOB))
    token = bindery.handler.context.tokens.make(BOB, ["binder"], None, 900, {"account": account.id})
    id = str(post(bindery, f"/books/{BOOK}/bind", {"pages": 1}, token).json()["id"])
    bindery.runner.run(accounts.set_roles("bob@example.org", []))
    settle(bindery)
    assert job(bindery, id, bindery.token(BOB))["errorCode"] == "NOT_FOUND", "it cannot read the book any more"


def test_a_lease_that_was_lost_commits_nothing(bindery: Service) -> None:
    """Another node takes the job over while this one still runs it: the effect is that of the other."""
    ann = bindery.token(ANN)
    id = tried(bindery, "wait", ann)
    runs(bindery, id, ann)
    other = JobService(bindery.handler.rest.calls.calls, bindery.app.config)
    store = bindery.app.store

    async def expire() -> None:
        await store.write(lambda: QUEUE.change(store.dialect, {"id": id}, lease_until=1))
        await other.look()
        for _ in range(400):
            await asyncio.sleep(0.05)
            if TRIES == [1, 2]:
                return

    bindery.runner.run(expire())
    assert TRIES == [1, 2]
    bindery.runner.get_loop().call_soon(GATE.set)
    bindery.runner.run(_settled(other, 20))
    ended = job(bindery, id, ann)
    assert (ended["state"], ended["attempts"], ended["result"]["attempt"]) == ("succeeded", 2, 2)
    assert titles(bindery) == ["Faust", "wait 1", "wait 2"], "both checkpoints, and one end"


def test_jobs_that_run_at_shutdown_are_given_back(bindery: Service) -> None:
    ann = bindery.token(ANN)
    id = tried(bindery, "wait", ann)
    runs(bindery, id, ann)
    bindery.runner.run(jobs(bindery).stop())
    (record,) = records(bindery)
    assert (record.lease_until, record.attempts) == (0, 0)
    assert job(bindery, id, ann)["state"] == "queued"
    bindery.runner.get_loop().call_soon(GATE.set)
    bindery.runner.run(_settled(JobService(bindery.handler.rest.calls.calls, bindery.app.config), 20))
    assert job(bindery, id, ann)["state"] == "succeeded"


def test_a_run_that_is_cancelled_twice_gives_its_transaction_back(bindery: Service) -> None:
    tried(bindery, "hold", bindery.token(ANN))
    while TRIES != [1]:
        spin(bindery, 0.05)
    (running,) = jobs(bindery)._running.values()

    async def cancel() -> None:
        while not running.task.done():
            running.task.cancel()
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)

    bindery.runner.run(cancel())
    assert bindery.app.store.load.used == 0
    begun = time.monotonic()
    assert post(bindery, "/books/all", None, bindery.token(BOB)).status == 202, "and no writer waits for it"
    assert time.monotonic() - begun < 4, "of the 5 s that a transaction may take"
    assert titles(bindery) == ["Faust"]


def test_jobs_that_ended_long_ago_are_deleted(bindery: Service, caplog: pytest.LogCaptureFixture) -> None:
    ann = bindery.token(ANN)
    with caplog.at_level(logging.CRITICAL, "diptych"):
        tried(bindery, "well", ann), tried(bindery, "break", ann)
        settle(bindery)
    calls = bindery.handler.rest.calls.calls
    assert bindery.runner.run(retention.sweep(calls, 3_600)) == 0
    tried(bindery, "well", ann)
    assert bindery.runner.run(retention.sweep(calls, -1)) == 2
    assert [row["state"] for row in bindery.rows("/jobs", token=ann)] == ["queued"]
    assert len(records(bindery)) == 1


def test_the_documents_describe_jobs(bindery: Service) -> None:
    document = bindery.get("/openapi.json", token=bindery.token(ANN)).json()
    bind = document["paths"]["/books/{id}/bind"]["post"]["responses"]
    assert "200" not in bind and "Location" in bind["202"]["headers"]
    assert bind["202"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Job"}
    assert {"get", "delete"} <= document["paths"]["/jobs/{id}"].keys()
    assert "/jobs" not in bindery.get("/openapi.json").json()["paths"], "nobody without a token has jobs"


def test_a_batch_and_a_mutation_queue_several(bindery: Service) -> None:
    ann = bindery.token(ANN)
    requests = [
        {"method": "POST", "url": "/books/try-out?fields=id,state", "body": {"how": "well"}},
        {"method": "PATCH", "url": f"/books/{BOOK}?fields=title", "body": {"title": "Urfaust"}},
    ]
    waits = tried(bindery, "wait", ann)
    requests.append({"method": "DELETE", "url": f"/jobs/{waits}"})
    first, second, third = post(bindery, "/batch", {"requests": requests}, ann).json()["responses"]
    assert (third["status"], third["body"]["state"]) == (200, "cancelled")
    assert (first["status"], first["body"]["state"], second["status"]) == (202, "queued", 200)
    assert first["headers"]["location"] == f"/jobs/{first['body']['id']}"
    settle(bindery)
    assert titles(bindery) == ["Urfaust", "well 1"]


def test_changes_of_jobs_can_be_followed(bindery: Service) -> None:
    ann, bob = bindery.token(ANN), bindery.token(BOB)
    id = tried(bindery, "well", ann)
    settle(bindery)
    seen = bindery.get("/jobs/changes?fields=state", token=ann).json()["data"]
    assert seen[0]["kind"] == "CREATED"
    assert seen[-1]["job"] == {"state": "succeeded"} and {change["rowId"] for change in seen} == {id}
    assert bindery.get("/jobs/changes", token=bob).json()["data"] == []


def test_operators_list_cancel_and_retry(bindery: Service, caplog: pytest.LogCaptureFixture) -> None:
    engine, run = bindery.handler.write_engine, bindery.runner.run
    ann = bindery.token(ANN)
    with caplog.at_level(logging.CRITICAL, "diptych"):
        broken, waits = tried(bindery, "break", ann), ""
        settle(bindery)
        waits = tried(bindery, "wait", ann)
    assert [(row.id, row.state) for row in run(manage.list_jobs(engine, None, 10))] == [
        (waits, JobState.queued),
        (broken, JobState.failed),
    ]
    assert [row.id for row in run(manage.list_jobs(engine, "failed", 10))] == [broken]
    assert run(manage.cancel(engine, waits)).state is JobState.cancelled
    for refused in (manage.cancel(engine, waits), manage.retry(engine, waits), manage.retry(engine, ANN)):
        with pytest.raises(Refusal):
            run(refused)
    assert run(manage.retry(engine, broken)).state is JobState.queued
    with caplog.at_level(logging.CRITICAL, "diptych"):
        settle(bindery)
    assert TRIES == [1, 1] and job(bindery, broken, ann)["state"] == "failed"


def test_a_service_that_drains_takes_no_jobs(bindery: Service) -> None:
    tried(bindery, "well", bindery.token(ANN))
    bindery.app.begin_drain()
    spin(bindery)
    assert TRIES == [] and len(records(bindery)) == 1


def test_a_look_at_an_empty_queue_is_one_read(bindery: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    store, done = bindery.app.store, list[str]()

    def spied(name: str) -> None:
        whole = getattr(store, name)

        async def counted(*given: Any, **named: Any) -> Any:
            done.append(name)
            return await whole(*given, **named)

        monkeypatch.setattr(store, name, counted)

    for name in ("run", "write", "session"):
        spied(name)
    wait = bindery.runner.run(jobs(bindery).look())
    assert done == ["run"] and wait > 1


def test_a_model_without_jobs_runs_nothing(runner: asyncio.Runner, new_sqlite: NewDatabase) -> None:
    with in_process(press, new_sqlite(), runner) as plain:
        assert plain.handler.jobs is None
        document = plain.get("/openapi.json", token=plain.token(ANN)).json()
        assert "/jobs" not in document["paths"] and "Job" not in document["components"]["schemas"]
        assert plain.get("/jobs", token=plain.token(ANN)).status == 404


def test_explain_knows_that_a_delete_cancels() -> None:
    view = model.view_as("signed_in")
    wanted = understand(RestRequest("DELETE", f"/jobs/{ANN}", "", None), model, view)
    called = understand(RestRequest("POST", f"/jobs/{ANN}/cancel", "", None), model, view)
    assert wanted.ops[0][0].ask == called.ops[0][0].ask
