"""The documents of both styles say which changes take a reason, and which need one."""

from __future__ import annotations

from typing import Any

from tests.contract.audit.audited_model import serving
from tests.support.running import NewDatabase

CHANGES = ("post", "put", "patch", "delete")


def test_the_header_is_a_parameter_of_all_operations_that_change_such_a_resource(new_sqlite: NewDatabase) -> None:
    with serving(new_sqlite()) as service:
        document = service.get("/openapi.json", token=service.token(None, "admin")).json()
        found: dict[str, set[bool | None]] = {}
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if method in ("parameters", "summary", "description"):
                    continue
                kind = f"{path.split('/')[1]} {'changes' if method in CHANGES else method}"
                found.setdefault(kind, set()).add(required(document, operation))
        assert found["posts changes"] == {False}
        assert found["invoices changes"] == {True}
        assert found["batch changes"] == found["graphql changes"] == {False}
        others = {name: kinds for name, kinds in found.items() if not name.startswith(("posts", "invoices"))}
        assert {
            kind for name, kinds in others.items() if "batch" not in name and "graphql" not in name for kind in kinds
        } == {None}
        assert found["posts get"] == found["invoices get"] == {None}


def required(document: dict[str, Any], operation: dict[str, Any]) -> bool | None:
    """Is the header required? None if it is no parameter."""
    for parameter in operation.get("parameters", ()):
        name = parameter.get("$ref", "").rpartition("/")[2]
        if name.startswith("Change-Reason"):
            resolved = document["components"]["parameters"][name]
            assert (resolved["name"], resolved["in"]) == ("Change-Reason", "header")
            return bool(resolved["required"])
    return None


def test_the_descriptions_of_mutations_say_so(new_sqlite: NewDatabase) -> None:
    with serving(new_sqlite()) as service:
        fields = service.data("{ __schema { mutationType { fields { name description } } } }")["__schema"]
        texts = {field["name"]: field["description"] for field in fields["mutationType"]["fields"]}
        assert "Takes a reason" in texts["createPost"] and "Takes a reason" in texts["publishPost"]
        assert all("Needs a reason" in texts[name] for name in ("createInvoice", "updateInvoices", "payInvoice"))
        assert "reason" not in texts["createAuthor"]
