"""The wheel, in an environment that has nothing else of this project: commands run, and type checkers pass.

The environment holds the wheel as pip installs it. Dependencies and type checkers are links to what is installed for these
tests, one for each package, without the project itself and without `.pth` files, which lead to the checkout.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.support.effort import sampled

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
INSTALLED = Path(sysconfig.get_path("purelib"))
SECONDS = 300
"""What a command may take; type checkers start without a cache."""
pytestmark = pytest.mark.timeout(2 * SECONDS)


@dataclass(frozen=True)
class Installed:
    """The environment, and a folder to work in."""

    python: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """No setting and no path of whoever runs the tests."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DIPTYCH_", "PYTHON"))}
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return {**kept, "PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "default"}

    def run(self, *command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(map(str, command)),
            cwd=cwd or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def diptych(self, *arguments: str, cwd: Path | None = None) -> str:
        """What a command of the wheel prints; it must succeed, and say nothing on stderr."""
        done = self.run(self.python.parent / "diptych", *arguments, cwd=cwd)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("diptych-*-py3-none-any.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    home = tmp_path_factory.mktemp("home")
    venv.create(home / "env", with_pip=False, symlinks=True)
    found = Installed(home / "env" / "bin" / "python", tmp_path_factory.mktemp("work"))
    command = [sys.executable, "-m", "pip", "--python", str(found.python), "install", "--no-index", "--no-deps", "-q"]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True)
    links = home / "links"
    links.mkdir()
    for package in INSTALLED.iterdir():
        if package.suffix != ".pth" and not package.name.lower().startswith(("diptych", "__editable__", "_virtualenv")):
            (links / package.name).symlink_to(package)
    (site,) = (home / "env" / "lib").glob("python*/site-packages")
    (site / "links.pth").write_text(f"{links}\n")
    return found


@pytest.fixture(scope="module")
def project(installed: Installed) -> Path:
    """A project that `diptych new` of the wheel has made, with the model of the README beside it."""
    told = installed.diptych("new", "project")
    assert "    cd project\n    diptych check\n    diptych dev\n" in told
    (model,) = re.findall(r"```python\n(.+?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[:1]
    (installed.folder / "project" / "blog.py").write_text(model, "utf-8")
    return installed.folder / "project"


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info/METADATA").decode()
    files = {
        str(file.relative_to(SRC)) for file in SRC.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    }
    assert names == files
    assert "diptych/py.typed" in names
    assert "License-File: LICENSE\n" in metadata
    assert re.search(r"^Requires-Dist: uvicorn<0\.\d+,>=", metadata, re.MULTILINE)


def test_no_checkout_is_near(installed: Installed) -> None:
    program = "import diptych, json, sys; print(json.dumps([diptych.__file__, diptych.__version__, sys.path]))"
    file, version, path = json.loads(installed.run(installed.python, "-c", program).stdout)
    assert Path(file).is_relative_to(installed.python.parents[1])
    assert not any(Path(place).is_relative_to(SRC) for place in path if place)
    assert installed.diptych("--version") == f"diptych, version {version}\n"


def test_the_model_of_a_new_project_and_of_the_readme_work(installed: Installed, project: Path) -> None:
    assert "2 resources (Person, Task)" in installed.diptych("check", cwd=project)
    assert "2 resources (Author, Post)" in installed.diptych("check", "blog:model", cwd=project)


@pytest.fixture
def address(installed: Installed, project: Path) -> Iterator[str]:
    """Where `diptych dev` of the wheel serves the new project."""
    command = [str(installed.python.parent / "diptych"), "dev", "--port", "0"]
    with subprocess.Popen(
        command, cwd=project, env=installed.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = next((line for line in process.stdout if line.startswith("GraphQL  ")), "")
        if first:
            yield first.split()[-1].removesuffix("/graphql")
        process.terminate()
        _, said = process.communicate(timeout=SECONDS)
    assert first and "Traceback" not in said, said


def ask(address: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(address, data, {"content-type": "application/json"}), timeout=60) as answer:
        return json.loads(answer.read())


def test_dev_answers_in_both_styles(address: str) -> None:
    assert ask(f"{address}/tasks?fields=title")["data"] == []
    assert ask(f"{address}/graphql", {"query": "{ tasks { title } }"}) == {"data": {"tasks": []}}


# type checkers

Checker = Callable[[Installed, Path], subprocess.CompletedProcess[str]]
SLIP = 'from blog import Author\n\nAuthor(name="Ann")\n'
"""A required field is missing: only a checker that knows the types of the package reports it."""


def mypy(installed: Installed, folder: Path) -> subprocess.CompletedProcess[str]:
    options = ["--strict", "--config-file=", f"--cache-dir={os.devnull}"]
    return installed.run(installed.python, "-m", "mypy", *options, ".", cwd=folder)


def pyright(installed: Installed, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    return installed.run(installed.python, "-m", "pyright", "--pythonpath", installed.python, cwd=folder)


@pytest.mark.parametrize("checker", sampled([pyright, mypy], 2))  # test_typing.py runs both, on the source
def test_strict_type_checkers_report_one_slip_and_nothing_else(
    checker: Checker, installed: Installed, project: Path
) -> None:
    (project / "slip.py").write_text(SLIP)
    done = checker(installed, project)
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert len(errors) == 1 and "slip.py:3" in errors[0] and '"email"' in errors[0], done.stdout + done.stderr
    assert re.search(r"Found 1 error in 1 file \(checked 5 source files\)|1 error, 0 warnings", done.stdout), (
        done.stdout
    )
