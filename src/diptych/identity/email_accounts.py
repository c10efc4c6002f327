"""Accounts by mail: people sign up, set a new password, verify their address and change it.

    await accounts.ask("reset", "ann@example.org", address, pages)      a mail is on its way, if there is an account
    found = await accounts.find(token)                                  what a link is for
    await accounts.set_password(token, "correct horse")                 uses it up

Nobody learns from `ask` whether there is an account: the answer, the statements and the time are the same. Anyone who
signs up sets the password after the link was opened, so nobody can prepare an account for someone else's address.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from diptych.db.script import Script, Violation
from diptych.db.store import Session, Store
from diptych.errors import Code, Refusal
from diptych.identity.email_links import LIFETIMES, FoundLink, Purpose, add_link, find_link, unchanged, use_link
from diptych.identity.mail.limits import count_from, count_to
from diptych.identity.mail.message import mailable, message
from diptych.identity.mail.post import Mailer
from diptych.identity.mail.templates import Kind
from diptych.identity.records import ACCOUNTS, Account, Revocation, unix_time
from diptych.identity.revocation_list import RevocationList, revocation
from diptych.identity.revoke import revoke_account
from diptych.identity.throttle import Throttled
from diptych.identity.verified_emails import verify_email

Hash = Callable[[str], Awaitable[str]]
"""Hashes a new password; a Refusal if it is too short or too long."""
MakeRow = Callable[[Session, Mapping[str, Any], str], Awaitable[str]]
"""Creates the row of a new user with these values and an address, and returns its id."""
ChangeRow = Callable[[Session, str, str], Awaitable[None]]
"""Sets the address in the row of a user."""
_USED = "This link is not valid any more. Ask for a new one."


class EmailAccounts:
    """The accounts of a store, as their owners use them by mail."""

    def __init__(self, store: Store, hash: Hash, revoked: RevocationList, post: Mailer) -> None:
        self._store = store
        self._hash = hash
        self._revoked = revoked
        self._post = post
        self.outbox = post.outbox

    async def stop(self) -> None:
        await self.outbox.stop()

    # asking for a link

    async def ask(
        self, purpose: Literal["sign-up", "reset"], email: str, address: str, pages: str, goes_on: str = ""
    ) -> Throttled | None:
        """Send a link to an address. `pages` is where the pages are: https://api.example.org/oauth."""
        email = mailable(email)
        self._post.outbox.check()

        def script() -> Script[tuple[str, Kind | None] | Throttled]:
            throttled = yield from count_from(self._store, address)
            if throttled is not None:
                return throttled
            may_send = yield from count_to(self._store, email)
            account = yield from ACCOUNTS.find(self._store.dialect, email=email)
            usable = account is None or account.disabled_at is None
            is_new = purpose == "sign-up" and account is None
            token = yield from add_link(
                self._store, "sign-up" if is_new else "reset", email, account if usable else None, goes_on
            )
            kind: Kind | None = "known" if purpose == "sign-up" else "reset"
            if is_new:
                kind = "sign-up"
            elif account is None or not usable:
                kind = None
            return token, kind if may_send else None

        made = await self._store.write(script)
        if isinstance(made, Throttled):
            return made
        token, kind = made
        self._send(kind, email, token, pages, LIFETIMES["sign-up" if kind == "sign-up" else "reset"])
        return None

    async def ask_verification(self, account: Account, address: str, pages: str) -> Throttled | None:
        """Send a link that verifies the address of an account which is signed in."""
        return await self._ask_own("verify", account, account.email, address, pages)

    async def ask_change(self, account: Account, email: str, address: str, pages: str) -> Throttled | None:
        """Send a link to a new address of an account which is signed in and has given its password; and tell the old
        one. Whether another account has that address, its owner learns and nobody else."""
        return await self._ask_own("change", account, mailable(email), address, pages)

    async def _ask_own(
        self, purpose: Literal["verify", "change"], account: Account, email: str, address: str, pages: str
    ) -> Throttled | None:
        self._post.outbox.check()

        def script() -> Script[tuple[str, str, bool] | Throttled]:
            throttled = yield from count_from(self._store, address)
            if throttled is not None:
                return throttled
            may_send = yield from count_to(self._store, email)
            token = yield from add_link(self._store, purpose, email, account, "")
            rescue = yield from add_link(self._store, "reset", account.email, account, "")
            return token, rescue, may_send

        made = await self._store.write(script)
        if isinstance(made, Throttled):
            return made
        token, rescue, may_send = made
        if purpose == "change":  # first: if the queue has room for one mail, it is this one
            self._send("changed" if may_send else None, account.email, rescue, pages, LIFETIMES["reset"])
        self._send(purpose if may_send else None, email, token, pages, LIFETIMES[purpose])
        return None

    def _send(self, kind: Kind | None, email: str, token: str, pages: str, lifetime: int) -> None:
        """Put a mail into the queue; without a kind, one that is not sent."""
        post, link = self._post, f"{pages}/confirm?token={token}"
        if kind is None:
            post.outbox.put(lambda: None)
            return
        values = {"service": post.service, "email": email, "link": link, "lasts": _lasts(lifetime)}
        post.outbox.put(lambda: message(post.sender, email, post.templates.fill(kind, values)))

    # using a link

    async def find(self, token: str) -> FoundLink | None:
        """What a link is for; None if it cannot be used."""
        return await self._store.write(lambda: find_link(self._store, token)) if token else None

    async def set_password(self, token: str, password: str) -> Account:
        """Set a new password by a link. It ends all sessions and tokens of the account, and verifies its address."""
        found = await self._found(token, "reset")
        hash = await self._hash(password)

        def script() -> Script[tuple[Account, Revocation]]:
            account = (yield from self._used(token, "reset", found)).account
            assert account is not None
            changed = yield from ACCOUNTS.change(self._store.dialect, unchanged(account), password=hash)
            if changed is None:
                raise _gone()
            revoked = revocation("account", account.id)
            yield from revoke_account(self._store, account.id, revoked)
            yield from verify_email(self._store, changed)
            return changed, revoked

        return await self._revoked.write(script)

    async def verify(self, token: str) -> Account:
        """Verify the address of an account by a link."""

        def script() -> Script[Account]:
            account = (yield from self._used(token, "verify")).account
            assert account is not None
            yield from verify_email(self._store, account)
            return account

        return await self._store.write(script)

    async def sign_up(
        self, token: str, password: str, values: Mapping[str, Any], roles: tuple[str, ...], make_row: MakeRow
    ) -> Account:
        """Create an account and the row of its user by a link, in one transaction. The address is verified."""
        found = await self._found(token, "sign-up")
        hash = await self._hash(password)
        session = await self._store.session()
        try:
            used = await session.drive(lambda: self._used(token, "sign-up", found))
            user = await make_row(session, values, used.record.email)
            account = Account(secrets.token_urlsafe(12), used.record.email, hash, user, roles, None, unix_time())

            def add() -> Script[bool]:
                added = yield from ACCOUNTS.add(self._store.dialect, account)
                yield from verify_email(self._store, account)
                return added

            if not await session.drive(add):
                raise _gone()
            await session.commit()
        finally:
            await session.end()
        return account

    async def change_email(self, token: str, change_row: ChangeRow) -> Account:
        """Change the address of an account, and that in the row of its user, by a link to the new address. It ends all
        sessions and tokens of the account."""
        session = await self._store.session()
        try:
            used = await session.drive(lambda: self._used(token, "change"))
            account, email = used.account, used.record.email
            assert account is not None
            revoked = revocation("account", account.id)
            changed = await session.drive(lambda: self._readdress(account, email, revoked))
            if account.user_id is not None:
                await change_row(session, account.user_id, email)
            await session.commit()
        finally:
            await session.end()
        self._revoked.add([revoked])
        await self._revoked.poll()
        return changed

    def _readdress(self, account: Account, email: str, revoked: Revocation) -> Script[Account]:
        if (yield from ACCOUNTS.find(self._store.dialect, email=email)) is not None:
            raise _taken()
        try:
            changed = yield from ACCOUNTS.change(self._store.dialect, unchanged(account), email=email)
        except Violation:  # another one has changed to it at the same time
            raise _taken() from None
        if changed is None:
            raise _gone()
        yield from verify_email(self._store, changed)
        yield from revoke_account(self._store, account.id, revoked)
        return changed

    async def _found(self, token: str, purpose: Purpose) -> FoundLink:
        """A link that can be used; a Refusal, before any password is hashed, if there is none."""
        found = await self.find(token)
        if found is None or found.record.purpose != purpose:
            raise _gone()
        return found

    def _used(self, token: str, purpose: Purpose, before: FoundLink | None = None) -> Script[FoundLink]:
        found = yield from use_link(self._store, token, purpose)
        if found is None or (before is not None and found.record != before.record):
            raise _gone()
        return found


def _gone() -> Refusal:
    return Refusal(Code.NOT_FOUND, _USED)


def _taken() -> Refusal:
    return Refusal(Code.CONFLICT, "There is another account with this address.")


def _lasts(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    if minutes or not hours:
        return f"{seconds // 60} minutes"
    return "one hour" if hours == 1 else f"{hours} hours"
