"""README and docs cannot drift: every setting, code, marker and operator has its heading, and what they show runs."""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import diptych
from diptych.config import SETTINGS
from diptych.errors import Code
from diptych.model.declare import markers
from diptych.model.operators import OPERATORS
from tests.support.cases import cases
from tests.support.running import PATIENCE, Answer, Client, NewDatabase, served

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md")) + [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
]


def headings(name: str) -> set[str]:
    text = (ROOT / "docs" / "reference" / name).read_text()
    return {match.strip("`") for match in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


@cases("setting", [each.name for each in SETTINGS])
def test_every_setting_has_its_heading(setting: str) -> None:
    assert setting in headings("settings.md")


@cases("code", list(Code))
def test_every_code_has_its_heading(code: Code) -> None:
    assert code.value in headings("errors.md")


@cases("operator", [*OPERATORS, "some", "none", "every"])
def test_every_operator_has_its_heading(operator: str) -> None:
    assert operator in headings("reading.md")


CHECKING = ("RequestMeasures", "Check", "Limits")
EMBEDDING = ("Config", "Diptych", "ModelError", "__version__")


@cases("word", [name for name in diptych.__all__ if name not in ("Model", "Viewer", "Id", *CHECKING, *EMBEDDING)])
def test_every_word_of_a_model_file_has_its_heading(word: str) -> None:
    assert any(re.search(rf"\b{word}\b", heading) for heading in headings("model.md"))


@pytest.mark.parametrize("word", CHECKING)
def test_every_word_of_a_check_has_its_heading(word: str) -> None:
    assert word in headings("limits.md")


def test_markers_are_all_offered() -> None:
    offered = set(diptych.__all__)
    declared = {
        name
        for name in vars(markers)
        if name[0].isupper() and getattr(vars(markers)[name], "__module__", "") == markers.__name__
    }
    assert declared - {"Big", "AnyJson", "KeyMark", "Marker"} <= offered


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the documentation site make them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


@cases("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#:\s]*\.(?:md|svg))?(?:#([\w-]+))?\)", text):
        other = page.parent / target if target else page
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), f"{target}#{anchor}"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = re.findall(r"^ +- (?:[\w -]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed)), "a page is listed twice"
    assert {*listed} == {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}


def test_the_names_in_the_architecture_exist() -> None:
    names = re.findall(r"`(diptych(?:\.\w+)+)`", (ROOT / "docs" / "explanation" / "architecture.md").read_text())
    assert len(names) > 30
    for name in names:
        assert pkgutil.resolve_name(name), name


def test_the_source_files_that_pages_name_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    roots = (ROOT, ROOT / "src", ROOT / "src" / "diptych")
    missing = [
        (page.name, name)
        for page in pages
        if page.name != "CHANGELOG.md" and "decisions" not in page.parts
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page.read_text())
        if not any((root / name).is_file() for root in roots)
    ]
    assert missing == []


def test_the_architecture_has_a_line_for_every_package() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    packages = {path.parent.name for path in (ROOT / "src" / "diptych").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == packages


def test_the_model_of_the_readme_works(tmp_path: Path) -> None:
    (source,) = re.findall(r"```python\n(.+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "blog.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "diptych", "check", "blog:model"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 resources (Author, Post)" in done.stdout


def test_the_requests_of_the_readme_answer_what_it_says(new_sqlite: NewDatabase) -> None:
    commands = re.findall(r"```sh\n(curl -s .+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    with served(new_sqlite(), "--sample") as service:
        bearer = service.token_of("admin").token
        graphql, rest, mutation, post, log = (
            subprocess.run(
                ["bash", "-c", command.replace("http://127.0.0.1:8000", service.url)],
                capture_output=True,
                text=True,
                check=True,
                env={"TOKEN": bearer},
            ).stdout
            for command in commands
        )
    assert re.fullmatch(r'\{"data":\{"posts":\[(\{"title":".+","author":\{"name":".+"\}\})\]\}\}', graphql)
    row = graphql.removeprefix('{"data":{"posts":').removesuffix("}}")
    assert rest.startswith(f'{{"data":{row},"page":{{"size":1,"next":"')
    assert mutation == '{"data":{"createUser":{"name":"Zoe","version":1}}}'
    assert post == '{"name":"Yan","version":1}'
    first = r'\{"eventId":"[\w-]+","cursor":"[\w-]+","kind":"CREATED","rowId":"[0-9a-f-]+","at":"[0-9T:.-]+Z","user":\{"name":"[^"]+"\}\}'
    assert re.fullmatch(rf'\{{"data":\[{first}\],"page":\{{"next":"[\w-]+","last":"[\w-]+"\}}\}}', log)


@pytest.mark.parametrize("page", ["README.md", "docs/reference/live.md"])
def test_the_streams_of_a_page_tell_of_a_change(page: str, new_sqlite: NewDatabase) -> None:
    commands = re.findall(r"```sh\n(curl -sN .+?)```", (ROOT / page).read_text(), re.DOTALL)
    assert commands
    with served(new_sqlite(), "--sample") as service:
        admin = service.token_of("admin")
        for number, command in enumerate(commands):
            bounded = command.replace("http://127.0.0.1:8000", service.url).replace(
                "curl", f"curl --max-time {PATIENCE}", 1
            )
            with subprocess.Popen(["bash", "-c", f"exec {bounded}"], stdout=subprocess.PIPE, text=True) as curl:
                assert curl.stdout is not None
                assert next(curl.stdout) == "retry: 1000\n"
                admin.post("/users", {"name": f"Una {number}", "email": f"una{number}@example.org"})
                told = next(line for line in curl.stdout if line.startswith("data: "))
                curl.terminate()
            assert '"kind":"CREATED"' in told
            assert f'"user":{{"name":"Una {number}"}}' in told


# requests and answers of a page


class Exchange(NamedTuple):
    """A request of a page and the answer that it shows: `…` is anything, `<name>` is a value that comes again."""

    method: str
    target: str
    headers: dict[str, str]
    body: str
    status: int
    shown: dict[str, str]
    answer: Any


def exchanges(page: str) -> Iterator[Exchange]:
    """Those in blocks of `http`, and documents of `graphql` that a block of `json` follows."""
    blocks = re.findall(
        r"```(http|graphql|json)\n(.+?)```", (ROOT / "docs" / "reference" / page).read_text(), re.DOTALL
    )
    for index, (kind, text) in enumerate(blocks):
        if kind == "http":
            asked, _, told = text.partition("\n\n")
            head, headers, body = message(asked)
            status, shown, answer = message(told)
            method, target = head.split(" ")
            yield Exchange(method, target, headers, body, int(status), shown, json.loads(answer) if answer else None)
        elif kind == "graphql":
            assert blocks[index + 1][0] == "json", text
            body = json.dumps({"query": text})
            yield Exchange("POST", "/graphql", {}, body, 200, {}, json.loads(blocks[index + 1][1]))


def message(text: str) -> tuple[str, dict[str, str], str]:
    """The first line, the headers, and the body."""
    first, *lines = text.strip().splitlines()
    headers: dict[str, str] = {}
    while lines and (found := re.fullmatch(r"([A-Z][A-Za-z-]+): (.+)", lines[0])):
        headers[found[1]] = found[2]
        del lines[0]
    return first, headers, "\n".join(lines)


class Reader:
    """Holds answers against what a page shows, and keeps the values that come again."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.values: dict[str, str] = {}

    def send(self, asked: Exchange) -> Answer:
        headers = {"Content-Type": "application/json", **asked.headers} if asked.body else asked.headers
        return self.client.request(asked.method, self.filled(asked.target), headers, self.filled(asked.body).encode())

    def filled(self, text: str) -> str:
        return re.sub("<([a-z]+)>", lambda found: self.values[found[1]], text)

    def agrees(self, shown: Any, found: Any) -> bool:
        if isinstance(shown, dict) and isinstance(found, dict):
            known = shown.keys() - {"…"}
            whole = known == found.keys() or ("…" in shown and known <= found.keys())
            return whole and all(self.agrees(shown[key], found[key]) for key in known)
        if isinstance(shown, list) and isinstance(found, list):
            return len(shown) == len(found) and all(map(self.agrees, shown, found))
        if isinstance(shown, str) and isinstance(found, str):
            return self.text_agrees(shown, found)
        return bool(shown == found)

    def text_agrees(self, shown: str, found: str) -> bool:
        parts = re.split("(…|<[a-z]+>)", shown)
        pattern = "".join(
            ".*" if part == "…" else self.group(part) if part[:1] == "<" else re.escape(part) for part in parts
        )
        match = re.fullmatch(pattern, found)
        self.values |= match.groupdict() if match else {}
        return match is not None

    def group(self, part: str) -> str:
        name = part[1:-1]
        return re.escape(self.values[name]) if name in self.values else f"(?P<{name}>.+)"


@pytest.mark.parametrize("page", ["writing.md", "live.md", "limits.md"])
def test_the_requests_of_a_page_answer_what_it_says(page: str, new_database: NewDatabase) -> None:
    with served(new_database(), "--sample") as service:
        reader = Reader(service.token_of("admin"))
        for asked in exchanges(page):
            answer = reader.send(asked)
            told = f"{asked}\n{answer}"
            assert answer.status == asked.status, told
            for name, value in asked.shown.items():
                assert reader.agrees(value, answer.headers.get(name.lower(), "")), told
            assert reader.agrees(asked.answer, answer.json() if answer.body else None), told
