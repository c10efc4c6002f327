"""The files beside the code say what is so: workflows, hooks, templates, and the verbs that they name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cases import cases
from tests.support.running import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(file for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")
VERBS = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
NEEDED = {"markdown": set[str](), "textarea": {"label"}, "input": {"label"}, "dropdown": {"label", "options"}}
NEEDED["checkboxes"] = {"label", "options"}


def read(file: Path) -> dict[Any, Any]:
    found = yaml.safe_load(file.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def lines_of(workflow: Path) -> list[str]:
    """What the steps of a workflow run in a shell."""
    steps = [step for job in read(workflow)["jobs"].values() for step in job["steps"]]
    return [line.strip() for step in steps for line in str(step.get("run", "")).splitlines()]


def verbs_in(text: str) -> set[str]:
    return {verb for line in text.splitlines() for verb in re.findall(r"^make ([\w.-]+)", line.strip())}


def test_there_are_workflows_and_forms() -> None:
    assert {file.name for file in WORKFLOWS} == {"ci.yml", "update.yml"}
    assert {file.name for file in FORMS} == {"bug.yml", "feature.yml"}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_has_what_github_needs_and_runs_verbs_that_exist(file: Path) -> None:
    workflow = read(file)
    assert {"name", True, "permissions", "jobs"} <= workflow.keys()  # YAML reads `on` as true
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= job.keys()
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    lines = lines_of(file)
    ours = [line for line in lines if line.startswith(("make ", "."))]
    assert ours
    for line in ours:
        command = line.split()[0]
        assert command == "make" or os.access(ROOT / command, os.X_OK), line
    assert verbs_in("\n".join(lines)) <= VERBS


def test_ci_runs_verbs_that_exist() -> None:
    found = verbs_in((ROOT / ".ci" / "run").read_text())
    assert {"check", "test"} <= found <= VERBS


def test_ci_covers_every_python_and_postgresql_that_is_supported() -> None:
    cases = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["include"]
    assert {case["python"] for case in cases} == {"3.11", "3.12", "3.13", "3.14"}
    assert {case["postgres"] for case in cases} == {"14", "15", "16", "17", "18"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=" + min(case["python"] for case in cases)
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert set(named) == {case["python"] for case in cases}
    (database,) = [
        field for field in read(ROOT / ".github/ISSUE_TEMPLATE/bug.yml")["body"] if field.get("id") == "database"
    ]
    offered = {f"PostgreSQL {case['postgres']}" for case in cases} | {"SQLite"}
    assert set(database["attributes"]["options"]) == offered


def test_contributing_lists_the_verbs() -> None:
    listed = re.findall(r"^\| `make ([a-z]+)[^`]*` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert VERBS - {"help", "clean"} <= set(listed) <= VERBS


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.name)
def test_a_form_has_fields_that_github_knows(file: Path) -> None:
    form = read(file)
    assert {"name", "description", "body"} <= form.keys()
    names = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(names) == len(set(names))
    for field in form["body"]:
        assert NEEDED[field["type"]] <= field["attributes"].keys()


def hooks() -> dict[str, dict[str, Any]]:
    repositories = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in repositories] == ["local"], "nothing is fetched"
    return {hook["id"]: hook for each in repositories for hook in each["hooks"]}


def test_hooks_are_tools_of_the_environment_that_are_locked() -> None:
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE))
    for hook in hooks().values():
        if hook["language"] != "pygrep":
            assert hook["language"] == "system"
            tool = re.match(r"\.venv/bin/(?:python -m )?([a-z]+)", hook["entry"])
            assert tool and tool[1] in locked, hook["entry"]


@cases(
    ("subject", "good"),
    [
        ("feat: reload by file events", True),
        ("fix(db): close the pool", True),
        ("refactor!: rename Asked", True),
        ('Revert "feat: x"', True),
        ("Reload by file events", False),
        ("feat:reload", False),
        ("feature: reload", False),
        ("Body first\n\nfeat: no subject", False),
    ],
)
def test_the_hook_of_subjects_takes_the_prefixes_of_contributing(subject: str, good: bool) -> None:
    hook = hooks()["subject"]
    assert hook["args"] == ["--negate", "--multiline"] and hook["stages"] == ["commit-msg"]
    assert bool(re.search(hook["entry"], subject, re.MULTILINE)) is good
    for prefix in re.findall(r"^\| `([a-z]+):` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE):
        assert re.search(hook["entry"], f"{prefix}: something")


def test_ci_repeats_tests_that_exist() -> None:
    """What measures time and has failed beside others runs once more, alone: by name, so that nothing else does."""
    names = re.findall(r'^    "(tests/\S+)",$', (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert names
    for name in names:
        file, _, test = name.partition("::")
        assert (ROOT / file).exists(), name
        assert not test or f"def {test}(" in (ROOT / file).read_text(), name


def test_make_prove_runs_every_test_that_has_a_short_form() -> None:
    """What `make test` draws less of, samples or leaves out, is done in full by `make prove` or `make soak`."""
    program = shutil.which("make")
    assert program is not None
    free = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    printed = subprocess.run(
        [program, "-n", "prove", "soak"], cwd=ROOT, env=free, capture_output=True, text=True, check=True
    ).stdout
    runs = [line.split() for line in printed.splitlines() if line.startswith("PROVE=long ")]
    named = {word for words in runs for word in words if word.startswith("tests/")}
    assert len(named) > 50
    short = re.compile(r"^from tests\.support\.effort import|^ *@given\(|mark\.long", re.MULTILINE)
    files = [file.relative_to(ROOT) for file in (ROOT / "tests").rglob("test_*.py") if short.search(file.read_text())]
    assert [str(file) for file in files if not {str(file), *map(str, file.parents)} & named] == []
    assert not any("-m" in words[words.index("pytest") :] for words in runs), "all marked tests of these files are run"
