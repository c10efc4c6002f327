"""The routes of the authorization server in an OpenAPI document: what clients send, and what they get.

    /.well-known/…        documents, which anyone may keep for a while
    /oauth/authorize      where a client sends a browser; the forms of its pages are theirs alone
    /oauth/token          forms of clients, answered as JSON, errors too (RFC 6749, §5.2)

Tools that know OAuth need none of this: the security schemes lead them here.
"""

from __future__ import annotations

from typing import Any

from diptych.api.rest.components import SERVICE, Part, answer, closed, errors, headers, operation
from diptych.api.rest.schemas import Schema
from diptych.api.rest.security import CLIENTS, NO_TOKEN

_TEXT: Schema = {"type": "string"}
_FORM = "application/x-www-form-urlencoded"
_CHALLENGE: Schema = {**_TEXT, "pattern": "^[A-Za-z0-9._~-]{43,128}$"}
_ASKED: dict[str, tuple[Schema, bool, str]] = {
    "response_type": ({"type": "string", "enum": ["code"]}, True, "A code, which the client exchanges for tokens."),
    "client_id": (_TEXT, True, "Which client asks."),
    "redirect_uri": (_TEXT, True, "Where to lead back to: an address of the client, as it is registered."),
    "code_challenge": (_CHALLENGE, True, "The SHA-256 of the verifier, in base64url (RFC 7636)."),
    "code_challenge_method": ({"type": "string", "enum": ["S256"]}, True, "How the challenge was made."),
    "scope": (_TEXT, False, "What is asked for, with spaces between; left out, all that the client may have."),
    "state": (_TEXT, False, "Given back as it is."),
}
_PROOF: dict[str, Schema] = {
    "client_id": {**_TEXT, "description": "Unless it is in the Authorization header."},
    "client_secret": {**_TEXT, "description": "Of a client that has one, unless it is in the Authorization header."},
}
_GRANT: Schema = {
    "type": "object",
    "properties": {
        "grant_type": {"type": "string", "enum": ["authorization_code", "refresh_token", "client_credentials"]},
        "code": {**_TEXT, "description": "With `authorization_code`."},
        "redirect_uri": {**_TEXT, "description": "With `authorization_code`: the same as before."},
        "code_verifier": {**_CHALLENGE, "description": "With `authorization_code`."},
        "refresh_token": {**_TEXT, "description": "With `refresh_token`: the last one that was given."},
        "scope": {**_TEXT, "description": "With the others: what is asked for, with spaces between."},
        **_PROOF,
    },
    "required": ["grant_type"],
}
_OF_TOKEN: Schema = {
    "type": "object",
    "properties": {
        "token": {**_TEXT, "description": "An access token or a refresh token."},
        "token_type_hint": {"type": "string", "enum": ["access_token", "refresh_token"]},
        **_PROOF,
    },
    "required": ["token"],
}
_TOKENS = closed(
    {"access_token": _TEXT, "token_type": {"type": "string", "enum": ["Bearer"]}, "expires_in": {"type": "integer"},
     "refresh_token": {**_TEXT, "description": "Not for a client by itself."}, "scope": _TEXT}, "refresh_token",
)  # fmt: skip
_INTROSPECTED: Schema = {
    "type": "object",
    "properties": {
        "active": {"type": "boolean", "description": "Does it hold? If not, nothing else is told."},
        **{name: _TEXT for name in ("client_id", "scope", "sub", "jti", "iss", "aud", "token_type")},
        "iat": {"type": "number"},
        "exp": {"type": "integer"},
        "roles": {"type": "array", "items": _TEXT},
    },
    "required": ["active"],
    "additionalProperties": False,
}
_INTROSPECT = "Does a token hold (RFC 7662)? For clients with a secret."
_PAGE_FORM: Schema = {"type": "object"}
_ERROR = closed({"error": _TEXT, "error_description": _TEXT}, "error_description")
_METADATA: Schema = {
    "type": "object",
    "properties": {
        name: {**_TEXT, "format": "uri"}
        for name in ("issuer", "authorization_endpoint", "token_endpoint", "revocation_endpoint",
                     "introspection_endpoint", "jwks_uri")
    },
    "required": ["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "response_types_supported"],
}  # fmt: skip
_KEYS = closed({"keys": {"type": "array", "items": {"type": "object", "required": ["kty", "kid", "alg"]}}})
_ALLOWED = {"description": "The methods are in `Allow`.", "headers": headers("Allow")}


def authorization_paths() -> dict[str, Part]:
    """Every route of the authorization server, the same for all roles."""
    page = "What the form of the page sends, which belongs to the browser that was given the page."
    ask = operation("Ask a person to allow something: pages to sign in and to decide.", SERVICE, _asked())
    decide = operation("What a person decided.", SERVICE, description=page)
    sign_in = operation("Sign a person in to these pages.", SERVICE, description=page)
    sign_out = operation("Sign a person out of these pages.", SERVICE, description=page)
    return {
        "/.well-known/oauth-authorization-server": _document("OauthMetadata", "What clients must know.", _METADATA),
        "/.well-known/jwks.json": _document("OauthKeys", "The keys that verify access tokens (RFC 7517).", _KEYS),
        "/oauth/authorize": {
            "get": _public("getOauthAuthorize", {**ask, "responses": _pages(200, 303, 400)}),
            "head": _public("headOauthAuthorize", {**ask, "responses": _without_content(_pages(200, 303, 400))}),
            "post": _public("postOauthAuthorize", _with_form(decide, _PAGE_FORM, _pages(200, 303, 400, 403))),
            "options": _options("OauthAuthorize"),
        },
        "/oauth/login": _only_post("OauthLogin", _with_form(sign_in, _PAGE_FORM, _pages(303, 400, 403, 429))),
        "/oauth/logout": _only_post("OauthLogout", _with_form(sign_out, _PAGE_FORM, _pages(303, 400, 403))),
        "/oauth/token": _for_clients("OauthToken", "Get tokens (RFC 6749).", _GRANT, "The tokens.", _TOKENS),
        "/oauth/revoke": _for_clients("OauthRevoke", "End a token (RFC 7009).", _OF_TOKEN, "It is ended.", closed({})),
        "/oauth/introspect": _for_clients("OauthIntrospect", _INTROSPECT, _OF_TOKEN, "Does it hold?", _INTROSPECTED),
    }


# documents


def _document(noun: str, summary: str, schema: Schema) -> Part:
    found = operation(summary, SERVICE)
    responses = {"200": answer("The document.", schema, "Cache-Control"), **errors((400, 503))}
    return {
        "get": _public("get" + noun, {**found, "responses": responses}),
        "head": _public("head" + noun, {**found, "responses": _without_content(responses)}),
        "options": _options(noun),
    }


# people


def _asked() -> list[Part]:
    return [
        {"name": name, "in": "query", "required": required, "description": text, "schema": schema}
        for name, (schema, required, text) in _ASKED.items()
    ]


_PAGES: dict[int, tuple[str, str | None]] = {
    200: ("A page to sign in or to decide on.", None),
    303: ("On to the next page; or back to the client, with a code or an error.", "Location"),
    400: ("A page that tells what is wrong.", None),
    403: ("The form is not one of this browser.", None),
    429: ("Too many attempts to sign in.", "Retry-After"),
}


def _pages(*statuses: int) -> Part:
    """Answers for browsers: HTML, or an address to go on to."""
    return {**{str(status): _page(status) for status in statuses}, **errors((503,))}


def _page(status: int) -> Part:
    text, header = _PAGES[status]
    found: Part = {"description": text, "headers": headers("Cache-Control")}
    if header is not None:
        found["headers"] |= {header: {"required": True, "schema": _TEXT}}
    return found if status == 303 else {**found, "content": {"text/html": {"schema": _TEXT}}}


# clients


def _for_clients(noun: str, summary: str, form: Schema, told: str, schema: Schema) -> Part:
    wrong = answer("What is wrong.", _ERROR, "Cache-Control")
    unproven = answer("The client is not proven.", _ERROR, "Cache-Control", "WWW-Authenticate")
    responses = {"200": answer(told, schema, "Cache-Control"), "400": wrong, "401": unproven, **errors((503,))}
    return _only_post(noun, _with_form(operation(summary, SERVICE), form, responses), CLIENTS)


# operations


def _with_form(found: Part, form: Schema, responses: Part) -> Part:
    body = {"required": True, "content": {_FORM: {"schema": form}}}
    return {**found, "requestBody": body, "responses": responses}


def _only_post(noun: str, found: Part, security: list[Part] = NO_TOKEN) -> Part:
    post: dict[str, Any] = {"operationId": "post" + noun, **found, "security": security}
    return {"post": post, "options": _options(noun)}


def _public(name: str, found: Part) -> Part:
    return {"operationId": name, **found, "security": NO_TOKEN}


def _options(noun: str) -> Part:
    options = operation("The methods of this path.", SERVICE)
    return _public("options" + noun, {**options, "responses": {"204": _ALLOWED, **errors((400,))}})


def _without_content(responses: Part) -> Part:
    """The responses to HEAD: those to GET, without the content."""
    return {
        status: {name: part for name, part in found.items() if name != "content"} if "description" in found
        else {"description": "The service cannot answer now."} for status, found in responses.items()
    }  # fmt: skip
