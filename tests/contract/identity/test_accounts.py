"""Accounts: who is let in, and what ends when an account changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.db.script import Script
from diptych.db.store import Session
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.identity import accounts as accounts_module
from diptych.identity import second_factor
from diptych.identity.email_accounts import EmailAccounts
from diptych.identity.email_links import add_link
from diptych.identity.passwords import Passwords
from diptych.identity.records import ACCOUNTS, CODES, GRANTS, REVOCATIONS, Account, unix_time
from diptych.identity.revoke import revoke_account
from diptych.identity.second_factor import SecondFactor
from diptych.identity.totp import PERIOD, code_at
from tests.contract.http import data
from tests.contract.identity.desk import ANN, BEN, PASSWORD, WRONG, Desk, Hasher, NewDesk
from tests.support.in_process import Service

# what an account may be


def test_an_account_is_found_by_its_address_however_it_is_written(one: Desk) -> None:
    made = one.run(one.accounts.add("  Ann@Example.ORG ", PASSWORD, ["staff", "admin"], "u1"))
    assert (made.email, made.roles, made.user_id, made.disabled_at) == (ANN, ("admin", "staff"), "u1", None)
    assert one.run(one.accounts.find("ANN@example.org")) == made
    assert one.run(one.accounts.find(BEN)) is None
    assert one.run(one.accounts.all()) == [made]


def test_an_address_is_taken_once(one: Desk) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    code, said = one.refused(one.accounts.add("ANN@EXAMPLE.ORG", PASSWORD))
    assert (code, said) == (Code.CONFLICT, f"There is an account with the address {ANN} already.")


def test_of_two_accounts_that_change_to_one_address_at_once_one_is_refused(one: Desk) -> None:
    """On PostgreSQL, neither sees the address of the other before it is committed."""
    post: Any = SimpleNamespace(outbox=None)
    changes = EmailAccounts(one.store, one.accounts.hash, one.revoked, post)

    async def change(email: str) -> str:
        account = await one.accounts.add(email, PASSWORD, user=email)
        token = await one.store.write(lambda: add_link(one.store, "change", "new@example.org", account, ""))
        try:
            return (await changes.change_email(token, linger)).id
        except Refusal as refusal:
            return refusal.code

    async def linger(session: Session, user: str, email: str) -> None:
        await asyncio.sleep(0.2)

    outcomes = one.gather(change(ANN), change(BEN))
    owner = one.run(one.accounts.find("new@example.org"))
    assert owner is not None and sorted(outcomes) == sorted([owner.id, Code.CONFLICT])


NO_ADDRESSES = [
    "",
    " ",
    "ann",
    "ann@",
    "@example.org",
    "a@b@example.org",
    "a b@example.org",
    "ann@example..org",
    "ann@.org",
    "ann@example.org.",
    "ann@\x00",
    "a\nb@example.org",
    "\ud800@example.org",
    "a" * 65 + "@example.org",
    "ann@" + "a." * 130 + "org",
]


def test_what_is_no_address_is_refused_and_nobody_signs_in_by_it(one: Desk) -> None:
    for number, email in enumerate(NO_ADDRESSES, 1):
        code, said = one.refused(one.accounts.add(email, PASSWORD))
        assert code is Code.BAD_USER_INPUT and said.endswith("is no e-mail address."), email
        assert one.sign_in(email) is None
        assert len(one.hasher.verified) == number


def test_what_is_no_id_is_refused(one: Desk) -> None:
    for user in ("", " ", "a b", "é", "x" * 256, "a\n"):
        assert one.refused(one.accounts.add(ANN, PASSWORD, (), user))[0] is Code.BAD_USER_INPUT, user


# passwords


def test_a_password_has_8_to_256_characters(one: Desk) -> None:
    one.run(one.accounts.add(ANN, None))
    for password in ("", "1234567", "x" * 257, "x" * 100_000, "\ud800" * 10, "\ufdfa" * 15):
        refused = (Code.BAD_USER_INPUT, "A password has 8 to 256 characters.")
        assert one.refused(one.accounts.add(BEN, password)) == refused
        assert one.refused(one.accounts.set_password(ANN, password)) == refused
    assert one.sign_in(ANN, password) is None


def test_there_is_no_other_rule_for_a_password(one: Desk) -> None:
    one.run(one.accounts.add(ANN, None))
    for password in ("12345678", "x" * 256, "        ", "\x00" * 8, "пароль как пароль", "😀" * 8):
        one.run(one.accounts.set_password(ANN, password))
        assert one.sign_in(ANN, password[:-1] + "!") is None
        assert isinstance(one.sign_in(ANN, password), Account)


def test_a_password_is_the_same_however_it_was_typed(one: Desk) -> None:
    one.run(one.accounts.add(ANN, "cafe\u0301 ｆｕｌｌ"))
    assert isinstance(one.sign_in(ANN, "caf\u00e9 full"), Account)


@pytest.mark.slow
def test_a_password_is_kept_by_argon2id_with_the_parameters_of_rfc_9106(one: Desk) -> None:
    passwords = Passwords()
    kept = one.run(passwords.hash(PASSWORD))
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$") and PASSWORD not in kept
    assert one.run(passwords.verify(kept, PASSWORD)) and not one.run(passwords.verify(kept, WRONG))


def test_a_hash_of_other_parameters_is_renewed_when_its_password_comes(new_desk: NewDesk) -> None:
    old, new = new_desk(), new_desk(hasher=Hasher(time_cost=2))
    before = old.run(old.accounts.add(ANN, PASSWORD))
    assert new.sign_in(ANN, WRONG) is None
    assert new.run(new.accounts.find(ANN)) == before
    after = new.sign_in()
    assert isinstance(after, Account) and after.password is not None
    assert "t=2" in after.password and new.run(new.accounts.find(ANN)) == after
    assert new.sign_in() == after
    assert new.hasher.made == 1


# signing in


def test_whoever_knows_the_password_is_let_in(one: Desk) -> None:
    made = one.run(one.accounts.add(ANN, PASSWORD, ["staff"], "u1"))
    assert one.sign_in(" Ann@example.org") == made
    assert one.sign_in(ANN, WRONG) is None
    assert one.sign_in(BEN, PASSWORD) is None


def test_every_no_costs_the_same_work(one: Desk) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    one.run(one.accounts.add(BEN, None))
    one.run(one.accounts.add("gone@example.org", PASSWORD))
    one.run(one.accounts.disable("gone@example.org"))
    for email, password in [
        (ANN, WRONG),
        (BEN, WRONG),
        (BEN, ""),
        ("gone@example.org", PASSWORD),
        ("gone@example.org", WRONG),
        ("nobody@example.org", WRONG),
        ("no address", WRONG),
        (ANN, "short"),
        (ANN, "x" * 5_000),
        ("\x00", "\x00"),
    ]:
        one.hasher.verified.clear()
        assert one.sign_in(email, password) is None
        assert len(one.hasher.verified) == 1, email
        (work,) = one.hasher.verified
        kept = (work.time_cost, work.memory_cost, work.parallelism, work.salt_len, work.hash_len)
        assert kept == (1, 8, 1, one.hasher.salt_len, one.hasher.hash_len), email


def test_a_disabled_account_can_sign_in_when_it_is_enabled(one: Desk) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    assert one.run(one.accounts.disable(ANN)).disabled_at is not None
    assert one.sign_in() is None
    one.run(one.accounts.enable(ANN))
    assert isinstance(one.sign_in(), Account)


def test_when_all_places_are_taken_others_are_sent_away(new_desk: NewDesk) -> None:
    one = new_desk(waiting=2)
    one.run(one.accounts.add(ANN, PASSWORD))
    one.hasher.door.clear()

    async def sign_in(caller: str, email: str = ANN) -> Any:
        CALLER.set(caller)
        return await one.accounts.authenticate(email, PASSWORD, "10.0.0.1")

    async def crowd() -> list[Any]:
        tasks = [one.runner.get_loop().create_task(sign_in(name)) for name in ("a", "b", "c", "d")]
        while len(one.hasher.verified) < 2:
            await _a_turn()
        with pytest.raises(Refusal) as refused:
            await one.runner.get_loop().create_task(sign_in("e", BEN))
        assert refused.value.code is Code.UNAVAILABLE
        assert len(one.hasher.verified) == 2  # so many threads
        one.hasher.door.set()
        return [await each for each in tasks]

    assert all(isinstance(each, Account) for each in one.run(crowd()))
    assert isinstance(one.sign_in(), Account)


def test_one_who_signs_in_all_the_time_keeps_nobody_out(new_desk: NewDesk) -> None:
    """One caller has half of the threads, and half of the queue at most."""
    one = new_desk(waiting=32)
    one.run(one.accounts.add(ANN, PASSWORD))
    one.hasher.door.clear()

    async def sign_in(caller: str) -> Any:
        CALLER.set(caller)
        return await one.accounts.authenticate(ANN, PASSWORD, "10.0.0.1")

    async def crowd() -> tuple[list[Any], Any]:
        loop = one.runner.get_loop()
        many = [loop.create_task(sign_in("hog")) for _ in range(100)]
        while not one.hasher.verified:
            await _a_turn()
        other = loop.create_task(sign_in("other"))
        while len(one.hasher.verified) < 2:
            await _a_turn()
        one.hasher.door.set()
        return await asyncio.gather(*many, return_exceptions=True), await other

    many, other = one.run(crowd())
    assert isinstance(other, Account)
    sent_away = [each for each in many if isinstance(each, Refusal)]
    assert len(sent_away) == 100 - 1 - 16


async def _a_turn() -> None:
    """Let others have the loop."""
    await asyncio.sleep(0.001)


def test_a_password_that_changes_while_it_is_looked_at_lets_nobody_in(one: Desk) -> None:
    made = one.run(one.accounts.add(ANN, PASSWORD))
    for change in ({"password": "another"}, {"password": made.password, "disabled_at": 1}):
        one.hasher.came.clear()
        one.hasher.door.clear()

        async def race(change: dict[str, Any]) -> Any:
            task = one.runner.get_loop().create_task(one.accounts.authenticate(ANN, PASSWORD, "10.0.0.1"))
            while not one.hasher.came.is_set():
                await _a_turn()
            await one.store.write(lambda: ACCOUNTS.change(one.store.dialect, {"email": ANN}, **change))
            one.hasher.door.set()
            return await task

        assert one.run(race(change)) is None
        one.run(
            one.store.write(
                lambda: ACCOUNTS.change(one.store.dialect, {"email": ANN}, password=made.password, disabled_at=None)
            )
        )
    assert one.sign_in() == made


# what ends

Change = Callable[[Desk], Coroutine[Any, Any, Account]]
CHANGES: dict[str, Change] = {
    "roles": lambda one: one.accounts.set_roles(ANN, ["admin"]),
    "password": lambda one: one.accounts.set_password(ANN, "another horse"),
    "disabling": lambda one: one.accounts.disable(ANN),
    "removal": lambda one: one.accounts.remove(ANN),
}
changes = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@changes
def test_a_change_ends_all_that_was_given_to_the_account_and_nothing_else(change: Change, one: Desk) -> None:
    ann, ben = (one.run(one.accounts.add(email, PASSWORD)) for email in (ANN, BEN))
    for number, account in enumerate([ann, ann, ben]):
        one.give(account.id, f"client-{number}", number)
    one.run(change(one))
    assert one.given() == ({"grant-2"}, {"code-2"}, {"browser-2"})


@changes
def test_a_change_ends_tokens_at_once_here_and_elsewhere_at_the_next_look(
    change: Change, shop: Service, at_shop: Desk, new_desk: NewDesk
) -> None:
    ann, ben = (at_shop.run(at_shop.accounts.add(email, PASSWORD)) for email in (ANN, BEN))
    grant = at_shop.give(ann.id, "client", 1)
    tokens = shop.handler.context.tokens

    def token(account: Account, **more: Any) -> str:
        return tokens.make(data.ANN, ["admin"], None, more={"account": account.id, **more})

    old, others, own = token(ann), token(ben), shop.token(data.ANN, "admin")
    late = tokens.make(data.ANN, ["admin"], None, more={"account": "another", "grant": grant.id})

    def statuses() -> list[int]:
        return [shop.get("/orders", token=each).status for each in (old, late, others, own)]

    assert statuses() == [200, 200, 200, 200]
    elsewhere = new_desk()
    elsewhere.run(change(elsewhere))
    assert statuses() == [200, 200, 200, 200]
    shop.runner.run(shop.handler.context.revoked.poll())
    assert statuses() == [401, 401, 200, 200]

    elsewhere.run(elsewhere.accounts.disable(BEN))
    at_shop.run(at_shop.accounts.disable(BEN))
    assert statuses() == [401, 401, 401, 200]


@changes
def test_a_grant_that_is_being_made_of_a_code_ends_too(change: Change, one: Desk) -> None:
    """Whoever exchanges the code has changed it, and is not done yet, when the account changes."""
    ann = one.run(one.accounts.add(ANN, PASSWORD))
    grant = one.give(ann.id, "client", 1)
    made = replace(grant, id="grant-2")

    def exchange() -> Script[None]:
        yield from CODES.change(one.store.dialect, {"hash": "code-1", "used_at": None}, used_at=1, grant_id=made.id)
        yield from GRANTS.add(one.store.dialect, made)

    async def race() -> None:
        session = await one.store.session()
        await session.drive(exchange)
        changing = asyncio.create_task(change(one))
        for _ in range(50):
            await _a_turn()
        await session.commit()
        await session.end()
        await changing

    one.run(race())
    assert one.given() == (set(), set(), set())
    ended = one.run(REVOCATIONS.all(one.store, "what", kind="grant"))
    assert [each.what for each in ended] == ["grant-1", "grant-2"]


def test_a_token_that_is_made_after_the_change_holds(shop: Service, at_shop: Desk) -> None:
    ann = at_shop.run(at_shop.accounts.add(ANN, PASSWORD))
    at_shop.run(at_shop.accounts.set_roles(ANN, ["staff"]))
    for _ in range(100):
        token = shop.handler.context.tokens.make(data.ANN, ["admin"], None, more={"account": ann.id})
        if shop.get("/orders", token=token).status == 200:
            break
        at_shop.run(_a_turn())  # made in the very millisecond of the change
    else:
        pytest.fail("a new token does not hold")


@changes
def test_a_key_for_an_app_that_nobody_confirmed_ends_with_the_sessions_that_saw_it(change: Change, one: Desk) -> None:
    factor = SecondFactor(one.store, b"secret")
    ann = one.run(one.accounts.add(ANN, PASSWORD))
    ben = one.run(one.accounts.add(BEN, PASSWORD))
    seen, other = one.run(factor.propose(ann)), one.run(factor.propose(ben))
    one.run(change(one))
    assert one.run(factor.propose(ann)) != seen and one.run(factor.propose(ben)) == other


def test_a_key_for_an_app_is_proposed_for_an_hour_and_stays_once_it_is_confirmed(
    one: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    factor, now = SecondFactor(one.store, b"secret"), unix_time()
    ann = one.run(one.accounts.add(ANN, PASSWORD))

    def proposed(later: int) -> bytes | None:
        monkeypatch.setattr(second_factor, "unix_time", lambda: now + later)
        return one.run(factor.propose(ann))

    first = proposed(0)
    assert first is not None and proposed(3_590) == first
    second = proposed(3_640)
    assert second is not None and second != first
    assert one.run(factor.confirm(ann, code_at(first, (now + 3_640) // PERIOD))) is None
    assert one.run(factor.confirm(ann, code_at(second, (now + 3_640) // PERIOD - 1))) is not None
    assert proposed(9_000) is None and one.run(factor.is_on(ann))


def test_enabling_ends_nothing(one: Desk) -> None:
    ann = one.run(one.accounts.add(ANN, PASSWORD))
    one.give(ann.id, "client", 1)
    one.run(one.accounts.enable(ANN))
    assert one.given() == ({"grant-1"}, {"code-1"}, {"browser-1"})


def test_a_change_that_cannot_end_the_grants_is_not_made(one: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = one.run(one.accounts.add(ANN, PASSWORD, ["staff"]))
    one.give(before.id, "client", 1)

    def fails(*given: Any) -> Script[None]:
        yield from revoke_account(*given)
        raise Refusal(Code.UNAVAILABLE, "The disk is full.")

    monkeypatch.setattr(accounts_module, "revoke_account", fails)
    assert one.refused(one.accounts.set_roles(ANN, ["admin"]))[0] is Code.UNAVAILABLE
    assert one.run(one.accounts.find(ANN)) == before
    assert one.given() == ({"grant-1"}, {"code-1"}, {"browser-1"})


def test_an_account_that_is_not_there_is_told(one: Desk) -> None:
    every: dict[str, Change] = {**CHANGES, "enabling": lambda one: one.accounts.enable(ANN)}
    for change in every.values():
        assert one.refused(change(one)) == (Code.NOT_FOUND, f"There is no account with the address {ANN}.")
