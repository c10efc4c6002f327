"""The schema against the service, by schemathesis: every query and mutation, with values that fit and with some that do not.

An answer is one of GraphQL, with codes of the table; its data are exactly what was asked for; and what does not fit the schema
is refused. What schemathesis itself takes for a server's error (any error with a path) is none here: that a row is not there,
or has another version, is told so.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import graphql
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.generation.case import Case
from schemathesis.schemas import APIOperation

from tests.proof.fuzz.answers import Answer
from tests.proof.fuzz.effort import FUZZ, SEED, UNMETERED
from tests.proof.fuzz.ground import Ground, survey
from tests.proof.fuzz.judge import RESPONSE, Judge
from tests.proof.fuzz.narrow import narrowed, offer_rows
from tests.proof.fuzz.shape import misshapen
from tests.support.running import Client, NewDatabase, Service, served
from tests.support.written_out import written_out

ROLES = ("admin", "user", "anonymous") if FUZZ > 1 else ("admin",)
EXAMPLES = int(os.environ.get("GRAPHQL_EXAMPLES") or (1 if FUZZ == 1 else FUZZ // 2))
"""For each operation, of each kind."""
Told = Callable[[str, object], None]


@dataclass(frozen=True)
class Stage:
    """A service, what is in it, and who judges it."""

    service: Service
    ground: Ground
    judge: Judge


@pytest.fixture(scope="module")
def stage(new_sqlite: NewDatabase) -> Iterator[Stage]:
    with served(new_sqlite(), "--sample", UNMETERED) as service:
        ground = survey(service)
        offer_rows([*ground.users[:6], *ground.posts[:6], *ground.comments[:6], *ground.orders[:6]])
        document = written_out(service.signed_in(ground.secrets["admin"]).get("/openapi.json").json())
        yield Stage(service, ground, Judge(document))


class Trial:
    """One role tries all operations."""

    def __init__(self, stage: Stage, role: str, *, whole: bool) -> None:
        self.stage = stage
        self.cases = 0
        self.answers: Counter[int] = Counter()
        self.with_data = 0
        client: Client = stage.service if role == "anonymous" else stage.service.signed_in(stage.ground.secrets[role])
        told = client.query(graphql.get_introspection_query())["data"]
        self.schema = graphql.build_client_schema(told)
        headers = {"Accept": RESPONSE, **({"Authorization": f"Bearer {client.token}"} if client.token else {})}
        config = SchemathesisConfig.from_dict(
            {
                "base-url": f"{client.url}/graphql",
                "headers": headers,
                "cache": {"enabled": False},
                "generation": {"database": "none", "graphql-allow-null": whole},
            }
        )
        self._offered = schemathesis.graphql.from_dict(told if whole else narrowed(told), config=config)

    def operations(self) -> list[APIOperation[Any, Any, Any, Any]]:
        return [each.ok() for each in self._offered.get_all_operations() if isinstance(each, Ok)]

    def run(self, mode: GenerationMode, examples: int) -> None:
        for operation in self.operations()[:: 1 if FUZZ > 1 else 3]:  # an ordinary run tries each third

            @seed(SEED)
            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
            )
            @given(operation.as_strategy(generation_mode=mode))
            def hold(case: Case[Any]) -> None:
                self.hold(case)

            hold()

    def hold(self, case: Case[Any]) -> None:
        """Send a case, and look at its answer."""
        response, document = case.call(), str(case.body)
        self.cases += 1
        self.answers[response.status_code] += 1
        headers = [
            (name.encode(), value.encode("latin-1")) for name, values in response.headers.items() for value in values
        ]
        answer = Answer(response.status_code, headers, response.content, is_whole=True, method=b"POST")
        fault = self.stage.judge.judge_one(answer, "POST", "/graphql")
        assert fault is None, f"{fault}\n{document}"
        body = answer.json()
        if body.get("data") is not None:
            self.with_data += 1
            wrong = misshapen(self.schema, document, body["data"])
            assert not wrong, f"{wrong}\n{document}\n{response.content[:1000]!r}"
        if case.meta is not None and case.meta.generation.mode.is_negative:
            assert "errors" in body, f"taken, though it does not fit the schema:\n{document}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("role", ROLES)
def test_every_operation_is_answered_as_the_schema_says(stage: Stage, role: str, record_property: Told) -> None:
    trial = Trial(stage, role, whole=False)
    trial.run(GenerationMode.POSITIVE, 2 * EXAMPLES)
    trial.run(GenerationMode.NEGATIVE, EXAMPLES)
    if FUZZ > 1:  # with all arguments at once, and null in the place of any of them
        whole = Trial(stage, role, whole=True)
        whole.run(GenerationMode.POSITIVE, max(1, EXAMPLES // 4))
        trial.cases, trial.answers = trial.cases + whole.cases, trial.answers + whole.answers
    told = {
        "what": f"schemathesis, GraphQL, {role}",
        "cases": trial.cases,
        "seed": SEED,
        "answers": dict(trial.answers),
    }
    record_property("fuzz", told)
    assert trial.cases > 50 and trial.with_data > 10
