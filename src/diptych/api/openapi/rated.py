"""What rate limits add to the OpenAPI document: 429 under its status, and the headers of the limits."""

from __future__ import annotations

from typing import Any

from diptych.api.openapi.components import ERRORS, JsonObject, headers, refer

_LIMITED = 429
_NAMES = ("RateLimit-Policy", "RateLimit")
_HEADERS = {
    "RateLimit-Policy": "The rates of the caller, a List of RFC 9651: name, quota `q`, seconds `w`, unit `qu`.",
    "RateLimit": "What is left of them: name, units `r`, and seconds until there are more, `t`.",
}
_TEXT = "The caller is over a rate, or sent too many new requests."
_DETAILS: JsonObject = {
    "violated-policies": {"type": "array", "items": {"type": "string"}, "description": "The rates that are exceeded."},
    "unit": {"type": "string", "enum": ["requests", "cost"], "description": "What the rate counts."},
    "quota": {"type": "integer", "minimum": 1, "description": "The units that the rate allows."},
    "window": {"type": "integer", "minimum": 1, "description": "The seconds in which it allows them."},
}


def add_rates(document: dict[str, Any]) -> None:
    """Add 429 to every operation, and headers to every response."""
    components = document["components"]
    content = components["responses"]["Error"]["content"]
    problem = content["application/problem+json"]["schema"]["$ref"].rpartition("/")[2]
    components["headers"] |= {
        name: {"description": text, "required": False, "schema": {"type": "string"}} for name, text in _HEADERS.items()
    }
    schema = components["schemas"][problem]
    schema["properties"] = schema["properties"] | _DETAILS
    name = ERRORS[_LIMITED][0]
    components["responses"][name] = {"description": _TEXT, "headers": headers("Retry-After"), "content": content}
    shared = list(components["responses"].values())
    for path, item in document["paths"].items():
        if path.startswith(("/oauth/", "/.well-known/", "/health/")):
            continue
        for operation in item.values():
            responses = operation.get("responses", {}) if isinstance(operation, dict) else {}
            if "default" in responses:
                responses.setdefault(str(_LIMITED), refer("responses", name))
            shared += [response for response in responses.values() if "$ref" not in response]
    for response in shared:
        response["headers"] = response.get("headers", {}) | headers(*_NAMES)
