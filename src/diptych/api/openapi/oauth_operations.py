"""OpenAPI operations of the authorization server.

    /.well-known/…        documents, which anyone may cache
    /oauth/authorize      where a client sends a browser; the forms of its pages are internal
    /oauth/token          forms of clients, answered as JSON, also errors (RFC 6749, §5.2)

Tools that know OAuth do not need them: the security schemes name the endpoints.
"""

from __future__ import annotations

from typing import Any

from diptych.api.openapi.components import SERVICE, JsonObject, answer, closed, errors, headers, html, operation
from diptych.api.openapi.schemas import Schema
from diptych.api.openapi.security import CLIENT_SECURITY, NO_TOKEN

_TEXT: Schema = {"type": "string"}
_FORM = "application/x-www-form-urlencoded"
_CHALLENGE: Schema = {**_TEXT, "pattern": "^[A-Za-z0-9._~-]{43,128}$"}
_AUTHORIZATION_PARAMETERS: dict[str, tuple[Schema, bool, str]] = {
    "response_type": ({"type": "string", "enum": ["code"]}, True, "A code, which the client exchanges for tokens."),
    "client_id": (_TEXT, True, "The client."),
    "redirect_uri": (_TEXT, True, "A registered redirect URI of the client."),
    "code_challenge": (_CHALLENGE, True, "The SHA-256 of the verifier, in base64url (RFC 7636)."),
    "code_challenge_method": ({"type": "string", "enum": ["S256"]}, True, "The method of the challenge."),
    "scope": (_TEXT, False, "The requested scopes, separated by spaces; if omitted, all that the client may have."),
    "state": (_TEXT, False, "Returned unchanged."),
    "nonce": ({**_TEXT, "maxLength": 512}, False, "Returned in the ID token unchanged."),
    "prompt": (_TEXT, False, "How to ask the user: none, login, consent or select_account."),
    "max_age": (
        {"type": "integer", "minimum": 0},
        False,
        "Seconds since the sign-in, above which the user signs in again.",
    ),
    "login_hint": (_TEXT, False, "The e-mail address to fill in."),
    "id_token_hint": (_TEXT, False, "An ID token of the user that is expected, with `prompt=none`."),
    "resource": ({**_TEXT, "format": "uri"}, False, "The address of this service, the only resource (RFC 8707)."),
}
_PROOF: dict[str, Schema] = {
    "client_id": {**_TEXT, "description": "Unless it is in the Authorization header."},
    "client_secret": {**_TEXT, "description": "Of a client that has one, unless it is in the Authorization header."},
}
_GRANT: Schema = {
    "type": "object",
    "properties": {
        "grant_type": {
            "type": "string",
            "enum": [
                "authorization_code",
                "refresh_token",
                "client_credentials",
                "urn:ietf:params:oauth:grant-type:device_code",
            ],
        },
        "code": {**_TEXT, "description": "With `authorization_code`."},
        "redirect_uri": {**_TEXT, "description": "With `authorization_code`: the same as before."},
        "code_verifier": {**_CHALLENGE, "description": "With `authorization_code`."},
        "refresh_token": {**_TEXT, "description": "With `refresh_token`: the last one that was issued."},
        "device_code": {**_TEXT, "description": "With `device_code`."},
        "scope": {**_TEXT, "description": "With the others: the requested scopes, separated by spaces."},
        "resource": {**_TEXT, "format": "uri", "description": "The address of this service (RFC 8707)."},
        **_PROOF,
    },
    "required": ["grant_type"],
}
_DEVICE: Schema = {
    "type": "object",
    "properties": {
        "scope": {**_TEXT, "description": "The requested scopes; if omitted, all that the client may have."},
        "resource": {**_TEXT, "format": "uri", "description": "The address of this service (RFC 8707)."},
        **_PROOF,
    },
}
_DEVICE_CODE = closed(
    {
        "device_code": {**_TEXT, "description": "With which the client polls for tokens."},
        "user_code": {**_TEXT, "description": "What the user types."},
        "verification_uri": {**_TEXT, "format": "uri"},
        "expires_in": {"type": "integer"},
        "interval": {"type": "integer", "description": "Seconds between two polls, at least."},
    }
)
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
    {
        "access_token": _TEXT,
        "token_type": {"type": "string", "enum": ["Bearer"]},
        "expires_in": {"type": "integer"},
        "refresh_token": {**_TEXT, "description": "Not with `client_credentials`."},
        "scope": _TEXT,
        "id_token": {**_TEXT, "description": "With `authorization_code` and the scope `openid`."},
    },
    "refresh_token",
    "id_token",
)
_INTROSPECTED: Schema = {
    "type": "object",
    "properties": {
        "active": {"type": "boolean", "description": "Is the token valid? If not, there is nothing else."},
        **{name: _TEXT for name in ("client_id", "scope", "sub", "jti", "iss", "token_type")},
        "aud": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        "iat": {"type": "integer"},
        "exp": {"type": "integer"},
        "roles": {"type": "array", "items": _TEXT},
    },
    "required": ["active"],
    "additionalProperties": False,
}
_INTROSPECT = "Token introspection (RFC 7662), for clients with a secret."
_PAGE_FORM: Schema = {"type": "object"}
_ERROR = closed({"error": _TEXT, "error_description": _TEXT}, "error_description")
_METADATA: Schema = {
    "type": "object",
    "properties": {
        name: {**_TEXT, "format": "uri"}
        for name in (
            "issuer",
            "authorization_endpoint",
            "token_endpoint",
            "userinfo_endpoint",
            "revocation_endpoint",
            "introspection_endpoint",
            "jwks_uri",
        )
    },
    "required": ["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "response_types_supported"],
}
_REGISTRATION: Schema = {
    "type": "object",
    "properties": {
        "redirect_uris": {"type": "array", "items": {**_TEXT, "format": "uri"}, "minItems": 1, "maxItems": 5},
        "client_name": {**_TEXT, "maxLength": 100},
        "token_endpoint_auth_method": {
            "type": "string",
            "enum": ["client_secret_basic", "client_secret_post", "none"],
        },
        "scope": _TEXT,
    },
    "required": ["redirect_uris"],
}
_RESOURCE: Schema = {
    "type": "object",
    "properties": {
        "resource": {**_TEXT, "format": "uri"},
        "authorization_servers": {"type": "array", "items": {**_TEXT, "format": "uri"}},
    },
    "required": ["resource", "authorization_servers"],
}
_CLAIMS: Schema = {
    "type": "object",
    "properties": {"sub": {**_TEXT, "description": "The user."}, "updated_at": {"type": "integer"}},
    "required": ["sub"],
    "description": "The claims that the scopes of the token allow (OpenID Connect Core, §5.1).",
}
_KEY = {
    "type": "object",
    "properties": {name: _TEXT for name in ("kty", "kid", "alg")},
    "required": ["kty", "kid", "alg"],
}
_KEYS = closed({"keys": {"type": "array", "items": _KEY}})


def authorization_paths() -> dict[str, JsonObject]:
    """Every route of the authorization server, the same for all roles."""
    page = "The form of the page, bound to the browser that got the page."
    ask = operation(
        "The authorization endpoint: pages to sign in and to consent.", SERVICE, _authorization_parameters()
    )
    decide = operation("The same by a form, or the decision of a person.", SERVICE, description=page)
    sign_in = operation("Sign a person in to these pages.", SERVICE, description=page)
    sign_out = operation("Sign a person out of these pages.", SERVICE, description=page)
    device = operation("The page on which a user types the code of a device (RFC 8628).", SERVICE)
    leave = operation("Sign out, for an app that wants it (RP-Initiated Logout).", SERVICE, _logout_parameters())
    left = operation("The same by a form, or the decision of the user.", SERVICE, description=page)
    of_device = operation("The code of a device, or the decision about it.", SERVICE, description=page)
    return {
        "/.well-known/oauth-authorization-server": _document(
            "OauthMetadata", "Metadata of the authorization server (RFC 8414).", _METADATA
        ),
        "/.well-known/openid-configuration": _document(
            "OpenidConfiguration", "The same, where OpenID Connect Discovery looks for it.", _METADATA
        ),
        "/.well-known/oauth-protected-resource": _document(
            "ProtectedResource", "Metadata of the API: who issues its tokens (RFC 9728).", _RESOURCE
        ),
        "/.well-known/jwks.json": _document("OauthKeys", "The keys that verify access tokens (RFC 7517).", _KEYS),
        "/oauth/authorize": {
            "get": _public("getOauthAuthorize", {**ask, "responses": _pages(200, 303, 400)}),
            "post": _public("postOauthAuthorize", _with_form(decide, _PAGE_FORM, _pages(200, 303, 400, 403))),
        },
        "/oauth/userinfo": {
            method: {"operationId": f"{method}OauthUserinfo", **_userinfo(), "security": _WITH_OPENID}
            for method in ("get", "post")
        },
        "/oauth/login": _only_post("OauthLogin", _with_form(sign_in, _PAGE_FORM, _pages(303, 400, 403, 429))),
        "/oauth/logout": _only_post("OauthLogout", _with_form(sign_out, _PAGE_FORM, _pages(303, 400, 403))),
        "/oauth/token": _for_clients("OauthToken", "Get tokens (RFC 6749).", _GRANT, "The tokens.", _TOKENS),
        "/oauth/end_session": {
            "get": _public("getOauthEndSession", {**leave, "responses": _pages(200, 303, 400)}),
            "post": _public("postOauthEndSession", _with_form(left, _PAGE_FORM, _pages(200, 303, 400, 403))),
        },
        "/oauth/device": {
            "get": _public("getOauthDevice", {**device, "responses": _pages(200)}),
            "post": _public("postOauthDevice", _with_form(of_device, _PAGE_FORM, _pages(200, 400, 403, 429))),
        },
        "/oauth/device_authorization": _with_waiting(
            _for_clients(
                "OauthDeviceAuthorization", "Begin the device flow (RFC 8628).", _DEVICE, "The codes.", _DEVICE_CODE
            )
        ),
        "/oauth/register": _only_post("OauthRegister", _register()),
        "/oauth/revoke": _for_clients("OauthRevoke", "Revoke a token (RFC 7009).", _OF_TOKEN, "Revoked.", closed({})),
        "/oauth/introspect": _for_clients(
            "OauthIntrospect", _INTROSPECT, _OF_TOKEN, "The state of the token.", _INTROSPECTED
        ),
    }


_WITH_OPENID: list[JsonObject] = [{"bearer": []}]


def _userinfo() -> JsonObject:
    part = operation("The claims about the user of an access token (OpenID Connect Core).", SERVICE)
    refused = answer("The token has not the scope `openid`.", _ERROR, "Cache-Control", "WWW-Authenticate")
    responses = {"200": answer("The claims.", _CLAIMS, "Cache-Control"), "403": refused, **errors((400, 401, 503))}
    return {**part, "responses": responses}


def _register() -> JsonObject:
    text = "Only where the setting `registration_origins` allows it, and for redirect URIs of these origins."
    part = operation("Register a client (RFC 7591).", SERVICE, description=text)
    body = {"required": True, "content": {"application/json": {"schema": _REGISTRATION}}}
    registered = {**_REGISTRATION, "required": ["client_id", "redirect_uris"]}
    responses = {
        "201": answer("The client, with its secret if it has one.", registered, "Cache-Control"),
        "400": answer("The error.", _ERROR, "Cache-Control"),
        "429": answer("Too many clients register.", _ERROR, "Cache-Control", "Retry-After"),
        **errors((404, 413, 503)),
    }
    return {**part, "requestBody": body, "responses": responses}


# documents


def _document(noun: str, summary: str, schema: Schema) -> JsonObject:
    part = operation(summary, SERVICE)
    responses = {"200": answer("The document.", schema, "Cache-Control"), **errors((400, 503))}
    return {"get": _public("get" + noun, {**part, "responses": responses})}


# people


def _authorization_parameters() -> list[JsonObject]:
    return [
        {"name": name, "in": "query", "required": required, "description": text, "schema": schema}
        for name, (schema, required, text) in _AUTHORIZATION_PARAMETERS.items()
    ]


def _logout_parameters() -> list[JsonObject]:
    texts = {
        "id_token_hint": "An ID token of the user and the client.",
        "client_id": "The client, unless the ID token names it.",
        "post_logout_redirect_uri": "A registered redirect URI of the client, to go on to.",
        "state": "Returned unchanged.",
    }
    return [
        {"name": name, "in": "query", "required": False, "description": text, "schema": _TEXT}
        for name, text in texts.items()
    ]


_PAGES: dict[int, tuple[str, str | None]] = {
    200: ("A page to sign in or to consent.", None),
    303: ("A redirect to the next page, or to the client with a code or an error.", "Location"),
    400: ("A page with the error.", None),
    403: ("The form does not belong to this browser.", None),
    429: ("Too many attempts to sign in.", "Retry-After"),
}


def _pages(*statuses: int) -> JsonObject:
    """Responses for browsers: HTML, or a redirect."""
    return {**{str(status): _page(status) for status in statuses}, **errors((503,))}


def _page(status: int) -> JsonObject:
    text, header = _PAGES[status]
    response: JsonObject = {"description": text, "headers": headers("Cache-Control")}
    if header is not None:
        response["headers"] |= {header: {"required": True, "schema": _TEXT}}
    return response if status == 303 else {**response, "content": html(status)}


# clients


def _for_clients(noun: str, summary: str, form: Schema, description: str, schema: Schema) -> JsonObject:
    wrong = answer("The error.", _ERROR, "Cache-Control")
    unauthorized = answer("Client authentication failed.", _ERROR, "Cache-Control", "WWW-Authenticate")
    responses = {
        "200": answer(description, schema, "Cache-Control"),
        "400": wrong,
        "401": unauthorized,
        **errors((503,)),
    }
    return _only_post(noun, _with_form(operation(summary, SERVICE), form, responses), CLIENT_SECURITY)


def _with_waiting(item: JsonObject) -> JsonObject:
    """An operation that is refused while too many wait."""
    item["post"]["responses"]["429"] = answer("Too many devices wait.", _ERROR, "Cache-Control")
    return item


# operations


def _with_form(part: JsonObject, form: Schema, responses: JsonObject) -> JsonObject:
    body = {"required": True, "content": {_FORM: {"schema": form}}}
    return {**part, "requestBody": body, "responses": responses}


def _only_post(noun: str, part: JsonObject, security: list[JsonObject] = NO_TOKEN) -> JsonObject:
    post: dict[str, Any] = {"operationId": "post" + noun, **part, "security": security}
    return {"post": post}


def _public(name: str, part: JsonObject) -> JsonObject:
    return {"operationId": name, **part, "security": NO_TOKEN}
