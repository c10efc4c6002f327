"""What graphql-cop looks for: its twelve tests, sent as it sends them.

The tool is in no package index, so its requests are written down here, from version 1.15; what it reports of the service
itself was compared with it once. A scenario works if it reports nothing.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.fit.scenario import Scenarios, Tool
from tests.support.running import Service

TOOL = Tool("graphql-cop (1.15, its requests)", "Security scanners")
WHY = {
    "introspection": "open by default, and exact for the role: it shows nothing that the caller could not use; `introspection = false` closes it",
    "GET queries": "wanted: responses to GET can be cached; mutations by GET are refused",
}


def test_graphql_cop(service: Service, scenario: Scenarios) -> None:
    def reports(query: str) -> Any:
        return service.post("/graphql", {"query": query, "operationName": "cop"}).json()

    with scenario("alias overloading"):
        aliases = " ".join(f"alias{number}:__typename" for number in range(101))
        assert "data" not in reports(f"query cop {{ {aliases} }}")
    with scenario("array batching"):
        assert service.post("/graphql", [{"query": "query cop { __typename }"}] * 10).status == 400
    with scenario("circular introspection"):
        deep = "fields { type { " * 4 + "name" + " } }" * 4
        assert "data" not in reports(f"query cop {{ __schema {{ types {{ {deep} }} }} }}")
    with scenario("directive overloading"):
        assert len(reports("query cop { __typename " + "@aa" * 10 + " }")["errors"]) != 10
    with scenario("field duplication"):
        answer = reports("query cop { " + "__typename \n" * 500 + "} ")
        assert "errors" in answer or answer == {"data": {"__typename": "Query"}}
    with scenario("field suggestions"):
        assert "Did you mean" not in str(reports("query cop { __schema { directive } }"))
    with scenario("GraphiQL or Playground"):
        page = service.get("/graphql", accept="text/html")
        assert not any(
            word in page.body.lower() for word in (b"graphiql.min.css", b"graphql playground", b"graphiql.css")
        )
    with scenario("introspection", fails=WHY["introspection"]):
        assert "data" not in reports("query cop { __schema { types { name fields { name } } } }")
    with scenario("GET queries", fails=WHY["GET queries"]):
        assert "data" not in service.get(f"/graphql?query={quote('query cop {__typename}')}").json()
    with scenario("GET mutations"):
        assert service.get(f"/graphql?query={quote('mutation cop {__typename}')}").status == 405
    with scenario("POST of forms"):
        kind = {"content-type": "application/x-www-form-urlencoded"}
        assert service.request("POST", "/graphql", kind, b"query=query+cop+%7B__typename%7D").status == 415
    with scenario("trace mode"):
        assert "tracing" not in str(reports("query cop { __typename }"))
    with scenario("unhandled errors"):
        assert "exception" not in str(reports("qwerty cop { abc }")).lower()
