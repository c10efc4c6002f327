"""What a model file can get wrong about jobs, each with how to fix it; and the resource that it gets."""

from __future__ import annotations

import pytest

from diptych import Model
from tests.support.model_files import declare

HEAD = "class Post(Resource):\n    title: str\n\n"


def causes(source: str) -> list[str]:
    built = declare(source).built
    return [] if isinstance(built, Model) else [mistake.cause for mistake in built.mistakes]


def action(options: str = "", signature: str = "cls, tx: JobTx") -> str:
    return f"{HEAD}    @action(background=True{options})\n    @classmethod\n    async def load({signature}) -> int:\n        return 1\n"


def test_a_model_has_jobs_only_if_something_runs_in_the_background() -> None:
    plain, jobs = declare(HEAD).built, declare(action()).built
    assert isinstance(plain, Model) and isinstance(jobs, Model)
    assert plain.job is None and "Job" not in plain.resources
    assert jobs.job is not None and jobs.job.path == "jobs"
    assert jobs.resources["Post"].actions["load"].result.resource == "Job"


def test_one_can_be_declared_under_another_name() -> None:
    built = declare(f"class Task(JobResource):\n    access = (grant('read', to=signed_in),)\n\n\n{action()}").built
    assert isinstance(built, Model)
    assert built.job is not None and built.job.name == "Task" and "Job" not in built.resources


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (action(", attempts=0"), "attempts=0 is no number from 1 to 100"),
        (action(", timeout=-1"), "timeout=-1 is no number of seconds up to a day"),
        (action(", retry=ValueError"), "retry=<class 'ValueError'> is no tuple of exceptions"),
        (action("", "cls"), "it takes no transaction"),
        (
            HEAD + "    @action\n    async def load(self, tx: JobTx) -> int:\n        return 1\n",
            "it takes no transaction",
        ),
        ("class Task(JobResource):\n    access = (grant('create'),)\n", "clients cannot write jobs"),
        ("class A(JobResource):\n    pass\n\n\nclass B(JobResource):\n    pass\n", "two resources are of jobs"),
        (
            HEAD + "    @every('soon')\n    @classmethod\n    async def a(cls, tx: JobTx) -> None: ...\n",
            "@every: 'soon' is no interval",
        ),
        (
            HEAD + "    @every(hours=1)\n    async def a(self, tx: JobTx) -> None: ...\n",
            "@every does not decorate a class method",
        ),
        (
            HEAD + "    @every(hours=1)\n    @classmethod\n    def a(cls, tx: JobTx) -> None: ...\n",
            "@every on a function that is not async",
        ),
        (
            HEAD + "    @every(hours=1)\n    @classmethod\n    async def a(cls, tx: JobTx, b: int) -> None: ...\n",
            "@every on a function with other arguments",
        ),
        (
            HEAD
            + "    @every(hours=1, roles=('x',))\n    @classmethod\n    async def a(cls, tx: JobTx) -> None: ...\n",
            "roles=('x',) is no tuple of roles",
        ),
    ],
)
def test_mistakes(source: str, cause: str) -> None:
    assert cause in causes(source)
