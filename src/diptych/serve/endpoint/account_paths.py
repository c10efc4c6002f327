"""The paths of accounts: beside those of the authorization server, whose cookie they share."""

from __future__ import annotations

SIGN_UP, RESET, CONFIRM = "/oauth/sign-up", "/oauth/reset", "/oauth/confirm"
ACCOUNT, SECOND_STEP = "/oauth/account", "/oauth/second-step"
ACCOUNT_PATHS = dict.fromkeys((SIGN_UP, RESET, CONFIRM, ACCOUNT, SECOND_STEP), ("GET", "HEAD", "POST"))
"""The methods of every path."""
