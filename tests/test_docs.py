"""README and docs cannot drift: every setting, code, marker and operator has its heading, and what README shows runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import diptych
from diptych.config import SETTINGS
from diptych.errors import Code
from diptych.model import markers
from diptych.model.scalars import TEXTUAL
from tests.running import NewDatabase, served

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md")) + [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]


def headings(name: str) -> set[str]:
    text = (ROOT / "docs" / name).read_text()
    return {match.strip("`") for match in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("setting", [each.name for each in SETTINGS])
def test_every_setting_has_its_heading(setting: str) -> None:
    assert setting in headings("settings.md")


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_its_heading(code: Code) -> None:
    assert code.value in headings("errors.md")


@pytest.mark.parametrize("operator", [*TEXTUAL, "some", "none", "every"])
def test_every_operator_has_its_heading(operator: str) -> None:
    assert operator in headings("reading.md")


@pytest.mark.parametrize("word", [name for name in diptych.__all__ if name not in ("Diptych", "Model", "Viewer", "Id")])
def test_every_word_of_a_model_file_has_its_heading(word: str) -> None:
    assert any(re.search(rf"\b{word}\b", heading) for heading in headings("model.md"))


def test_markers_are_all_offered() -> None:
    offered = set(diptych.__all__)
    declared = {name for name in vars(markers) if name[0].isupper() and getattr(vars(markers)[name], "__module__", "") == markers.__name__}
    assert declared - {"Big", "AnyJson", "Key", "Marker"} <= offered


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_model_of_the_readme_works(tmp_path: Path) -> None:
    (source,) = re.findall(r"```python\n(.+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "blog.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "diptych", "check", "blog:model"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2 resources (Author, Post)" in done.stdout


def test_the_requests_of_the_readme_answer_what_it_says(new_sqlite: NewDatabase) -> None:
    commands = re.findall(r"```sh\n(curl.+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    with served(new_sqlite(), "--sample") as service:
        graphql, rest = (
            subprocess.run(
                ["bash", "-c", command.replace("http://127.0.0.1:8000", service.url)], capture_output=True, text=True, check=True
            ).stdout
            for command in commands
        )
    assert re.fullmatch(r'\{"data":\{"posts":\[(\{"title":".+","author":\{"name":".+"\}\})\]\}\}', graphql)
    row = graphql.removeprefix('{"data":{"posts":').removesuffix("}}")
    assert rest.startswith(f'{{"data":{row},"page":{{"size":1,"next":"')
