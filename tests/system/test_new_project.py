"""`diptych new` makes a project that works, and overwrites nothing."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import Command, diptych, environment, running

NAMES = [".gitignore", "Containerfile", "README.md", "diptych.toml", "migrations", "tasks.py", "test_tasks.py"]


def made(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def own_tests(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The tests of a project, run as its README says."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    env = environment(
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", **more
    )  # those of this checkout: a new project has none of them
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_it_makes_the_files_and_prints_the_next_commands(command: Command, tmp_path: Path) -> None:
    done = command("new", "ideas/tasks")
    assert (done.returncode, done.stderr) == (0, "")
    assert made(tmp_path / "ideas" / "tasks") == NAMES
    steps = re.findall(r"^    (.+)$", done.stdout, re.MULTILINE)
    assert steps == ["cd ideas/tasks", "diptych check", "diptych dev", "python -m pytest"]


def test_without_a_folder_it_makes_them_here(command: Command, tmp_path: Path) -> None:
    done = command("new")
    assert done.returncode == 0, done.stderr
    assert made(tmp_path) == NAMES
    assert "    cd " not in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_it_overwrites_nothing_and_makes_nothing_then(name: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    done = command("new", ".")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f". has {name} already; nothing was made.\n")
    assert (made(tmp_path), (tmp_path / name).read_text()) == ([name], "mine")


def test_a_link_that_leads_nowhere_is_not_written_through(command: Command, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").symlink_to(tmp_path / "elsewhere.py")
    assert command("new").returncode == 2
    assert made(tmp_path) == ["tasks.py"]


def test_a_folder_that_cannot_be_made_is_refused_in_one_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in ("file", "file/below"):
        done = command("new", folder)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(f"The project cannot be made in {folder}: ")


def test_the_model_works_and_its_tests_pass(tmp_path: Path) -> None:
    assert diptych("new", cwd=tmp_path).returncode == 0
    checked = diptych("check", cwd=tmp_path)
    assert checked.stdout == "The model works: 2 resources (Person, Task), roles anonymous, signed_in, admin.\n"
    assert "4 passed" in own_tests(tmp_path).stdout


def test_its_first_migration_leads_to_the_model(tmp_path: Path) -> None:
    assert diptych("new", cwd=tmp_path).returncode == 0
    assert diptych("migrate", "check", cwd=tmp_path).stdout == "1 migration leads to the model.\n"
    again = diptych("migrate", "make", cwd=tmp_path)
    assert again.stdout == "The model is as the last migration leaves it: nothing to do.\n", again.stderr
    applied = diptych("migrate", "apply", cwd=tmp_path)
    assert (applied.returncode, (tmp_path / "tasks.db").exists()) == (0, True), applied.stderr
    assert "0001_first  applied\n" in diptych("migrate", "status", cwd=tmp_path).stdout
    assert diptych("check", "--database", "sqlite:///tasks.db", cwd=tmp_path).returncode == 0


LOOSENED = {
    "return self.shared | (self.owner.id == viewer.id)": 'return self.title != ""',
    "bool:\n        return self.owner.id == viewer.id": 'bool:\n        return self.title != ""',
    "MaxLen(254), ReadBy(admin)": "MaxLen(254)",
}


def test_its_tests_notice_rules_that_are_loosened(tmp_path: Path) -> None:
    assert diptych("new", cwd=tmp_path).returncode == 0
    model = tmp_path / "tasks.py"
    assert all(rule in model.read_text() for rule in LOOSENED)
    model.write_text(functools.reduce(lambda text, change: text.replace(*change), LOOSENED.items(), model.read_text()))
    assert diptych("check", cwd=tmp_path).returncode == 0
    assert "4 failed" in own_tests(tmp_path).stdout


def test_the_lines_of_its_readme_run(tmp_path: Path) -> None:
    """Every curl of the page, in order, with the values that a reader would put in."""
    assert diptych("new", cwd=tmp_path).returncode == 0
    text = (tmp_path / "README.md").read_text().replace("\\\n", "")
    lines = re.findall(r"^    ((?:curl|ANN=).+)$", text, re.MULTILINE)
    assert len(lines) == 6
    said: list[str] = []
    with running("dev", database="sqlite:///tasks.db", cwd=tmp_path) as service:
        values = {"ADMIN": service.out.wait(r"\n(ey\S+)\n")[1]}
        for line in lines:
            places = {"http://127.0.0.1:8000": service.url, "diptych token": f"{sys.executable} -m diptych token"}
            for name, answer in zip(("PERSON_ID", "TASK_ID"), said[::2], strict=False):
                places[name] = re.findall(r'"id":"([^"]+)"', answer)[0]
            shell = functools.reduce(lambda text, place: text.replace(*place), places.items(), line)
            done = subprocess.run(
                ["sh", "-c", f'{shell}\nprintf "\n%s" "$ANN"'],
                cwd=tmp_path,
                env=environment(**values),
                capture_output=True,
                text=True,
                check=True,
            )
            answer, _, values["ANN"] = done.stdout.rpartition("\n")
            said.append(answer)
    assert '"title":"Write a model","done":false' in said[3]
    assert said[4] == '{"data":{"tasks":[{"title":"Write a model","done":false}]}}'
    assert '"done":true' in said[5]
