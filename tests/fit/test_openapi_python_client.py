"""openapi-python-client: a package with types; the page about it is the program that is tried."""

from __future__ import annotations

from pathlib import Path

from tests.fit.rest import code_of, hold, save_document, tried
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import PYTHON, need, pypi, python
from tests.support.running import Service

TOOL = Tool("openapi-python-client", "REST clients", pypi=("openapi-python-client",))
PRINT = """
orders = [row.status.value for row in opened.data]
print(json.dumps({"name": name, "updated": updated.name, "orders": orders, "authors": authors, "faults": faults}))
"""


def test_openapi_python_client(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    need(PYTHON)
    save_document(service, admin, tmp_path)
    env = {"PATH": f"{PYTHON}:/usr/bin:/bin"}  # it formats what it generates by ruff
    with scenario("generate"):
        said = generate(tmp_path, env)
        assert "WARNING" not in said and "Unable" not in said, said
    (tmp_path / "steps.py").write_text((Path(__file__).parent / "python" / "rest_steps.py").read_text("utf-8"), "utf-8")
    with scenario("compile"):
        pypi("mypy", "--strict", "steps.py", "shop", cwd=tmp_path)
    found = tried(lambda: python("steps.py", service.url, admin, cwd=tmp_path))
    hold(found, scenario, service, admin, "python@fit.example")


def test_the_page_about_it(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    need(PYTHON)
    save_document(service, admin, tmp_path)
    (tmp_path / "use.py").write_text(code_of("how-to/python-client.md", "python") + PRINT, "utf-8")
    with scenario("page of docs"):
        generate(tmp_path, {"PATH": f"{PYTHON}:/usr/bin:/bin"})
        pypi("mypy", "--strict", "use.py", cwd=tmp_path)
        found = python("use.py", cwd=tmp_path, env={"API": service.url, "TOKEN": admin})
        assert (found["name"], found["updated"], found["faults"]) == ("Zoe", "Zora", ["/name", "/email"])
        assert set(found["orders"]) <= {"pending", "paid"} and len(found["authors"]) == 2


def generate(folder: Path, env: dict[str, str]) -> str:
    options = ("--meta", "none", "--output-path", "shop", "--overwrite")
    return pypi("openapi-python-client", "generate", "--path", "openapi.json", *options, cwd=folder, env=env)
