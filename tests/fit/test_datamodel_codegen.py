"""datamodel-code-generator: Pydantic models of all schemas, which take what the service answers."""

from __future__ import annotations

from pathlib import Path

from tests.fit.rest import save_document
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import PYTHON, need, pypi, python
from tests.support.running import Service

TOOL = Tool("datamodel-code-generator", "REST tools", pypi=("datamodel-code-generator",))
OPTIONS = (
    *(
        "--input-file-type",
        "openapi",
        "--output-model-type",
        "pydantic_v2.BaseModel",
        "--target-python-version",
        "3.11",
    ),
    *(
        "--use-annotated",
        "--set-default-enum-member",
        "--no-use-specialized-enum",
    ),  # as its docs say, for type checkers
)
USE = """
import json, sys, urllib.request
from models import OrderPage, Problem, User, UserCreate, UserPage

def get(path):
    request = urllib.request.Request(sys.argv[1] + path, headers={"Authorization": "Bearer " + sys.argv[2]})
    return urllib.request.urlopen(request).read()

users = UserPage.model_validate_json(get("/users?first=3"))
orders = OrderPage.model_validate_json(get("/orders?first=3"))
user: User = users.data[0]
made = UserCreate(name="Zoe", email="zoe@example.org").model_dump_json()
print(json.dumps({"name": user.name, "statuses": [order.status.value for order in orders.data], "made": made}))
"""


def test_datamodel_codegen(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    need(PYTHON)
    save_document(service, admin, tmp_path)
    with scenario("generate"):
        pypi("datamodel-codegen", "--input", "openapi.json", "--output", "models.py", *OPTIONS, cwd=tmp_path)
    with scenario("compile"):
        pypi("mypy", "--strict", "models.py", cwd=tmp_path)
    (tmp_path / "use.py").write_text(USE, "utf-8")
    with scenario("read"):
        found = python("use.py", service.url, admin, cwd=tmp_path)
        assert found["name"] and len(found["statuses"]) == 3 and '"name":"Zoe"' in found["made"]
