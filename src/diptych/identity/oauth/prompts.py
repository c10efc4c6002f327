"""The parameters about asking the user to sign in: `prompt`, `max_age` and hints (OpenID Connect Core, §3.1.2.1).

prompt=none       no page at all: a code, or the error login_required or consent_required
prompt=login      the user signs in again, whether signed in or not
prompt=consent    the user is asked for consent, as always without `none`
max_age=3600      the user signs in again if that was longer ago
"""

from __future__ import annotations

from collections.abc import Mapping

from authlib.oauth2.rfc6749 import InvalidRequestError, OAuth2Error
from msgspec import Struct

from diptych.identity.records import unix_time

_WORDS = frozenset(("none", "login", "consent", "select_account"))
_LONGEST_NONCE = 512
_UNSUPPORTED = {
    "request": "request_not_supported",
    "request_uri": "request_uri_not_supported",
    "registration": "registration_not_supported",
}


class NotSupported(OAuth2Error):
    """A parameter that passes the request in a form that is not supported."""


class LoginRequired(OAuth2Error):
    error = "login_required"
    description = "The user has to sign in, and prompt is none."


class ConsentRequired(OAuth2Error):
    error = "consent_required"
    description = "The user has to consent, and prompt is none."


class Prompt(Struct, frozen=True):
    """What an authorization request says about asking its user."""

    words: frozenset[str] = frozenset()
    max_age: int | None = None
    id_token_hint: str = ""
    login_hint: str = ""

    @property
    def is_silent(self) -> bool:
        """May no page be shown?"""
        return "none" in self.words

    def accepts(self, auth_time: int) -> bool:
        """Need a user who signed in then not sign in again? `max_age=0` is as `prompt=login`."""
        if "login" in self.words or self.max_age == 0:
            return False
        return self.max_age is None or unix_time() - auth_time <= self.max_age


def read_prompt(parameters: Mapping[str, str]) -> Prompt:
    """The prompt of an authorization request; an OAuth2Error if it is wrong or asks for what is not supported."""
    for name, error in _UNSUPPORTED.items():
        if name in parameters:
            raise NotSupported(f"The parameter '{name}' is not supported.", error=error)
    words, age = frozenset(parameters.get("prompt", "").split()), parameters.get("max_age", "")
    if not words <= _WORDS or ("none" in words and len(words) > 1):
        raise InvalidRequestError("'prompt' is none alone, or any of login, consent and select_account.")
    if age and not (age.isascii() and age.isdigit() and len(age) <= 10):
        raise InvalidRequestError("'max_age' is not a number of seconds.")
    if parameters.get("response_mode", "query") != "query":
        raise InvalidRequestError("The only 'response_mode' is query.")
    if len(parameters.get("nonce", "")) > _LONGEST_NONCE:
        raise InvalidRequestError(f"'nonce' has more than {_LONGEST_NONCE} characters.")
    hints = (parameters.get("id_token_hint", ""), parameters.get("login_hint", "")[:254])
    return Prompt(words, int(age) if age else None, *hints)


def after_sign_in(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parameters of a request whose user has just signed in, as it asked: without asking for that again."""
    kept = [(name, value) for name, value in pairs if name not in ("prompt", "max_age")]
    words = " ".join(word for word in dict(pairs).get("prompt", "").split() if word != "login")
    return [*kept, ("prompt", words)] if words else kept
