"""What is deprecated is marked in the GraphQL schema and in the OpenAPI document."""

from __future__ import annotations

from graphql import GraphQLInputObjectType, GraphQLObjectType, print_schema, validate_schema

from diptych.api.graphql.schema import build_schema
from diptych.api.openapi.document import build_openapi
from tests.contract.deprecation.diary import model

TITLE = "Use headline. (Since 2026-01-01, sunset 2026-12-31)"


def test_the_schema_marks_all_kinds() -> None:
    schema = build_schema(model().view_as("anonymous"))
    assert validate_schema(schema) == []
    marked = set()
    for name, kind in schema.type_map.items():
        if isinstance(kind, GraphQLObjectType | GraphQLInputObjectType) and not name.startswith("__"):
            for key, field in kind.fields.items():
                if field.deprecation_reason:
                    marked.add(f"{name}.{key}")
                for argument, each in getattr(field, "args", {}).items():
                    if each.deprecation_reason:
                        marked.add(f"{name}.{key}({argument}:)")
    assert {
        "Page.title", "PageWhere.title", "PageOrder.title", "PageCreate.title", "PagePatch.title", "PageReplace.title",
        "Page.author", "Page.authorId", "Page.notes", "Page.notesConnection", "Page.notesSummary", "PageWhere.notes",
        "Query.note", "Query.notes", "Query.notesConnection", "Query.notesSummary", "Query.notesGroups",
        "Mutation.createNote", "Mutation.updateNote", "Mutation.deleteNotes", "Subscription.noteChanged",
        "Mutation.flipPage", "Mutation.turnPage(note:)", "Query.topPages(limit:)", "PagesSummary.rank",
    } <= marked  # fmt: skip
    assert not {place for place in marked if place.startswith(("Author.", "AuthorWhere.", "Note.", "Query.page"))}
    page = schema.type_map["Page"]
    assert isinstance(page, GraphQLObjectType) and page.fields["title"].deprecation_reason == TITLE
    assert '  low @deprecated(reason: "Use calm. (Since 2026-03-01)")' in print_schema(schema)


def test_the_openapi_document_marks_all_kinds() -> None:
    document = build_openapi(model().view_as("anonymous"), server="http://localhost", issuer="http://localhost")
    schemas, paths = document["components"]["schemas"], document["paths"]
    page = schemas["Page"]["allOf"][1]["properties"]
    title = page["title"]
    assert (title["deprecated"], title["x-sunset"]) == (True, "2026-12-31")
    assert title["description"].endswith("Deprecated: " + TITLE)
    assert all(page[name]["deprecated"] for name in ("rank", "author", "authorId", "notes"))
    assert "deprecated" not in page["headline"]
    for name in ("PageCreate", "PagePatch", "PageReplace", "PageWhere"):
        assert schemas[name]["properties"]["title"]["deprecated"], name
    assert schemas["Mood"]["x-deprecated-values"] == {"low": None}
    marked = {
        f"{method} {path}"
        for path, item in paths.items()
        for method, part in item.items()
        if isinstance(part, dict) and part.get("deprecated")
    }
    assert {"get /notes", "post /notes", "get /notes/{id}", "delete /notes/{id}", "get /pages/{id}/notes"} <= marked
    assert "post /pages/{id}/flip" in marked
    assert not any(place.split()[1] in ("/pages", "/pages/{id}", "/authors") for place in marked)
    assert paths["/pages/top"]["get"]["parameters"][0]["deprecated"]
    turned = paths["/pages/{id}/turn"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert turned["properties"]["note"]["deprecated"]
    listed = {each["$ref"].rpartition("/")[2] for each in paths["/pages"]["get"]["parameters"] if "$ref" in each}
    assert "Page.title-String" in listed and "headline-String" in listed
    assert document["components"]["parameters"]["Page.title-String"]["deprecated"]
