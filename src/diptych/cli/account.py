"""`diptych account`: manage the accounts that can sign in."""

from __future__ import annotations

import sys
from typing import Any

import click

from diptych.cli.model import check_roles, load_model
from diptych.cli.records import ROLES, USER, in_database, iso_time, listed, print_table, run_on_store
from diptych.errors import StartError
from diptych.identity.accounts import Accounts
from diptych.identity.checks import checked_email, checked_user
from diptych.identity.passwords import checked_password
from diptych.identity.records import Account

_LONGEST_LINE = 10_000
_EMAIL = click.argument("email", metavar="EMAIL")
_STDIN = click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")


@click.group()
def account() -> None:
    """Accounts: who can sign in, as which user, with which roles.

    A change of the roles or the password, disabling and removal end the account's tokens at once.
    """


@account.command()
@_EMAIL
@ROLES
@USER
@_STDIN
@in_database
def add(email: str, roles: tuple[str, ...], user: str | None, password_stdin: bool, **flags: Any) -> None:
    """Add an account; asks for its password."""
    check_roles(load_model(flags["model"]), roles)
    email, user = checked_email(email), checked_user(user)
    password = _password(password_stdin)
    run_on_store(flags, lambda store, revoked: Accounts(store, revoked).add(email, password, roles, user))
    click.echo(f"{email} can sign in.")


@account.command("list")
@in_database
def list_(**flags: Any) -> None:
    """List all accounts."""
    accounts = run_on_store(flags, lambda store, revoked: Accounts(store, revoked).all())
    rows = [
        (account.email, account.user_id or "-", listed(account.roles), _state(account), iso_time(account.created_at))
        for account in accounts
    ]
    print_table(("EMAIL", "USER", "ROLES", "STATE", "CREATED"), rows)


@account.command()
@_EMAIL
@ROLES
@in_database
def roles(email: str, roles: tuple[str, ...], **flags: Any) -> None:
    """Set the roles of an account to exactly those that are named."""
    check_roles(load_model(flags["model"]), roles)
    account = run_on_store(flags, lambda store, revoked: Accounts(store, revoked).set_roles(email, roles))
    click.echo(
        f"{account.email} has the roles {', '.join(account.roles)}." if roles else f"{account.email} has no roles."
    )


@account.command()
@_EMAIL
@_STDIN
@in_database
def password(email: str, password_stdin: bool, **flags: Any) -> None:
    """Set the password of an account; asks for it."""
    email = checked_email(email)
    new = _password(password_stdin)
    run_on_store(flags, lambda store, revoked: Accounts(store, revoked).set_password(email, new))
    click.echo(f"{email} has a new password.")


@account.command()
@_EMAIL
@in_database
def disable(email: str, **flags: Any) -> None:
    """Keep an account from signing in, without removing it."""
    account = run_on_store(flags, lambda store, revoked: Accounts(store, revoked).disable(email))
    click.echo(f"{account.email} is disabled.")


@account.command()
@_EMAIL
@in_database
def enable(email: str, **flags: Any) -> None:
    """Let a disabled account sign in again."""
    account = run_on_store(flags, lambda store, revoked: Accounts(store, revoked).enable(email))
    click.echo(f"{account.email} is enabled.")


@account.command()
@_EMAIL
@in_database
def remove(email: str, **flags: Any) -> None:
    """Remove an account. Its user in the model stays."""
    account = run_on_store(flags, lambda store, revoked: Accounts(store, revoked).remove(email))
    click.echo(f"{account.email} is removed.")


@account.command("reset-totp")
@_EMAIL
@in_database
def reset_totp(email: str, **flags: Any) -> None:
    """Turn off the authenticator app of an account.

    That is for a phone that is lost. The tokens and sessions of the account end.
    """
    account, was_on = run_on_store(flags, lambda store, revoked: Accounts(store, revoked).reset_totp(email))
    outcome = "needs no authenticator app any more" if was_on else "had no authenticator app"
    click.echo(f"{account.email} {outcome}.")


def _state(account: Account) -> str:
    if account.disabled_at is not None:
        return "disabled"
    return "enabled" if account.password else "no password"


def _password(from_stdin: bool) -> str:
    """Read a new password: from a hidden prompt, twice, or from standard input. It is never an argument, which others
    could see in the process list."""
    if from_stdin:
        line = sys.stdin.buffer.readline(_LONGEST_LINE)
        try:
            return checked_password(line.decode().rstrip("\r\n"))
        except UnicodeDecodeError:
            raise StartError("The password on standard input is not UTF-8.") from None
    if not sys.stdin.isatty():
        raise StartError("There is no terminal to ask for the password; give it with --password-stdin.")
    return checked_password(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
