"""OpenAPI operations of accounts: sign-up, a new password, and the links of mails.

Programs send JSON and get JSON; the pages of browsers are at the same paths, and their forms are internal.
"""

from __future__ import annotations

from diptych.api.openapi.components import SERVICE, JsonObject, answer, closed, errors, headers, html, operation
from diptych.api.openapi.schemas import Schema
from diptych.api.openapi.security import NO_TOKEN

_TEXT: Schema = {"type": "string"}
_EMAIL: Schema = {
    "type": "object",
    "properties": {"email": {**_TEXT, "format": "email", "maxLength": 254, "description": "The address of the mail."}},
    "required": ["email"],
    "additionalProperties": False,
}
_CONFIRMATION: Schema = {
    "type": "object",
    "properties": {
        "token": {**_TEXT, "description": "The token of the link."},
        "password": {**_TEXT, "description": "The new password, for a sign-up and a new password."},
        "fields": {"type": "object", "description": "The fields of the new user, for a sign-up."},
    },
    "required": ["token"],
    "additionalProperties": False,
}
_SENT = closed({"status": {"type": "string", "enum": ["sent"]}})
_DONE = closed(
    {
        "status": {"type": "string", "enum": ["done"]},
        "purpose": {"type": "string", "enum": ["sign-up", "reset", "verify", "change"]},
    }
)
_ERRORS = (404, 422, 429, 503)
_OFFERED = "It is there if the service can send mails"
_SAME = "The response is the same whether there is an account or not."


def account_paths() -> dict[str, JsonObject]:
    """The routes of accounts, the same for all roles."""
    sign_up = f"{_OFFERED}, and if the model has a sign-up. {_SAME}"
    done = answer("It is done.", _DONE, "Cache-Control")
    page = operation("The page of one's own account, to sign in to, and its forms.", SERVICE)
    step = operation("The page that asks for the second factor, and its form.", SERVICE)
    return {
        "/oauth/sign-up": _asking("SignUp", "Ask for a link that creates an account.", sign_up),
        "/oauth/reset": _asking("PasswordReset", "Ask for a link that sets a new password.", f"{_OFFERED}. {_SAME}"),
        "/oauth/confirm": {
            "get": _get("EmailLink", operation("The page of a link.", SERVICE, [_LINK]), 200, 400, 429),
            "post": _post("EmailLink", operation("Use a link, once.", SERVICE), _CONFIRMATION, {"200": done}, 409),
        },
        "/oauth/account": _browsing("Account", page),
        "/oauth/second-step": _browsing("SecondStep", step),
    }


_LINK: JsonObject = {"name": "token", "in": "query", "required": True, "description": "Of the mail.", "schema": _TEXT}


def _asking(noun: str, summary: str, text: str) -> JsonObject:
    sent = answer("A mail is on its way, if there is anyone to send it to.", _SENT, "Cache-Control")
    page = operation(f"The page of the same: {summary[0].lower()}{summary[1:]}", SERVICE)
    return {
        "get": _get(f"{noun}Page", page, 200),
        "post": _post(noun, operation(summary, SERVICE, description=text), _EMAIL, {"202": sent}),
    }


def _browsing(noun: str, part: JsonObject) -> JsonObject:
    """A page, and its forms."""
    body = {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}}
    pages = {str(status): _page(status) for status in (200, 303, 400, 403, 429)}
    form = {"operationId": f"post{noun}Form", **part, "requestBody": body, "responses": {**pages, **errors((503,))}}
    return {"get": _get(f"{noun}Page", part, 200, 400), "post": {**form, "security": NO_TOKEN}}


def _get(noun: str, part: JsonObject, *statuses: int) -> JsonObject:
    pages = {str(status): _page(status) for status in statuses}
    responses = {**pages, **errors(status for status in (400, 404, 503) if status not in statuses)}
    return {"operationId": f"get{noun}", **part, "responses": responses, "security": NO_TOKEN}


def _post(noun: str, part: JsonObject, schema: Schema, done: JsonObject, *more: int) -> JsonObject:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    responses = {**done, "400": _page(400), **errors((*_ERRORS, *more))}
    return {"operationId": f"post{noun}", **part, "requestBody": body, "responses": responses, "security": NO_TOKEN}


def _page(status: int) -> JsonObject:
    if status == 303:
        there = {**headers("Cache-Control"), "Location": {"required": True, "schema": _TEXT}}
        return {"description": "A redirect to the next page.", "headers": there}
    text = {200: "A page.", 403: "The form does not belong to this browser.", 429: "Too many attempts."}
    description = text.get(status, "A page with the error.")
    return {"description": description, "headers": headers("Cache-Control"), "content": html(status)}
