"""The admin pages: accounts, clients, API keys, signing keys, trusted documents, webhooks and migrations, as the
commands of the same names.

    GET    admin/accounts                 the list
    POST   admin/accounts                 {"email": …, "password": …, "roles": […], "user": …}
    PATCH  admin/accounts/a%40b.example   {"roles": […]}, {"password": …}, {"disabled": true} or {"totp": false}
    DELETE admin/accounts/a%40b.example

Secrets are shown once, when they are made; no list has one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from diptych.api.graphql.manifest import DocumentEntry, document_faults, operations_of
from diptych.api.graphql.persisted import HASH_PREFIX, is_hash
from diptych.api.graphql.schema import build_schema
from diptych.db.trusted_documents import TrustedDocument, add_documents, all_documents, remove_documents
from diptych.engine.read import Engine
from diptych.engine.watch import WatchEngine
from diptych.errors import Code, Fault, Refusal
from diptych.identity.accounts import Accounts
from diptych.identity.api_keys import ApiKeys
from diptych.identity.checks import checked_email, checked_user
from diptych.identity.clients import Clients
from diptych.identity.keys import remove_key, rotate_key, signing_keys
from diptych.identity.owner import fixed_owner
from diptych.identity.passwords import checked_password
from diptych.identity.records import Account, ClientDetails, ClientRecord, unix_time
from diptych.identity.revocation_list import RevocationList
from diptych.identity.scopes import IDENTITY_SCOPES
from diptych.migrate.status import migration_status
from diptych.model.model import Model
from diptych.webhooks import manage
from diptych.webhooks.manage import WebhookStatus

Json = dict[str, Any]
Act = Callable[[str, Json], Awaitable[Any]]
_MAX_TTL = 10**9


class Admin:
    """The lists of one service, and what may be done with them."""

    def __init__(self, engine: Engine, revoked: RevocationList, webhook_networks: str = "") -> None:
        self.model = engine.model
        self._engine = engine
        self._webhook_networks = webhook_networks
        self.store = engine.store
        self.checks = engine.checks
        self._accounts = Accounts(engine.store, revoked)
        self._clients = Clients(engine.store, revoked)
        self._keys = ApiKeys(engine.store, revoked)
        self.acts: Mapping[str, Mapping[str, Act]] = {
            "accounts": {
                "GET": self._list_accounts,
                "POST": self._add_account,
                "PATCH": self._change_account,
                "DELETE": self._remove_account,
            },
            "clients": {"GET": self._list_clients, "POST": self._add_client, "DELETE": self._remove_client},
            "keys": {"GET": self._list_keys, "POST": self._add_key, "DELETE": self._remove_key},
            "signing-keys": {
                "GET": self._list_signing_keys,
                "POST": self._rotate,
                "DELETE": self._remove_signing_key,
            },
            "documents": {"GET": self._list_documents, "POST": self._add_documents, "DELETE": self._remove_document},
            "webhooks": {
                "GET": self._list_webhooks,
                "POST": self._add_webhook,
                "PATCH": self._replay_webhook,
                "DELETE": self._remove_webhook,
            },
            "migrations": {"GET": self._migrations},
        }
        """What each method does, by list; the arguments are the name in the path and the body."""

    # accounts

    async def _list_accounts(self, name: str, body: Json) -> Any:
        return [_account(account) for account in await self._accounts.all()]

    async def _add_account(self, name: str, body: Json) -> Any:
        email, user = checked_email(_text(body, "email")), checked_user(_text_or_none(body, "user"))
        roles, password = self._roles(body), _text_or_none(body, "password")
        if password is not None:
            checked_password(password)
        await self._accounts.add(email, password, roles, user)
        account = await self._accounts.find(email)
        assert account is not None
        return _account(account)

    async def _change_account(self, name: str, body: Json) -> Any:
        match body:
            case {"roles": _}:
                return _account(await self._accounts.set_roles(name, self._roles(body)))
            case {"password": _}:
                return _account(await self._accounts.set_password(name, checked_password(_text(body, "password"))))
            case {"disabled": bool(disabled)}:
                change = self._accounts.disable if disabled else self._accounts.enable
                return _account(await change(name))
            case {"totp": False}:
                account, _ = await self._accounts.reset_totp(name)
                return _account(account)
        raise bad_member("", "expected roles, password, disabled, or totp: false")

    async def _remove_account(self, name: str, body: Json) -> Any:
        return _account(await self._accounts.remove(name))

    # clients

    async def _list_clients(self, name: str, body: Json) -> Any:
        details = await self._clients.details()
        return [_client(client, details.get(client.id)) for client in await self._clients.all()]

    async def _add_client(self, name: str, body: Json) -> Any:
        client, secret = await self._clients.add(
            _text(body, "name"),
            _texts(body, "redirects"),
            confidential=body.get("confidential") is True,
            roles=self._roles(body),
            scopes=self._scopes(body, IDENTITY_SCOPES),
            device=body.get("device") is True,
        )
        return {**_client(client, None), "secret": secret}

    async def _remove_client(self, name: str, body: Json) -> Any:
        return _client(await self._clients.remove(name), None)

    # API keys

    async def _list_keys(self, name: str, body: Json) -> Any:
        return [
            {
                "name": key.name,
                "user": key.user_id,
                "roles": list(key.roles),
                "scopes": None if key.scopes is None else list(key.scopes),
                "created": key.created_at,
                "expires": key.expires_at,
                "used": key.used_at,
            }
            for key in await self._keys.all()
        ]

    async def _add_key(self, name: str, body: Json) -> Any:
        ttl = body.get("ttl")
        if ttl is not None and not (isinstance(ttl, int) and 1 <= ttl <= _MAX_TTL):
            raise bad_member("ttl", "expected a number of seconds")
        user, scopes = checked_user(_text_or_none(body, "user")), self._scopes(body)
        key, text = await self._keys.add(_text(body, "name"), user, self._roles(body), scopes or None, ttl)
        return {"name": key.name, "text": text}

    async def _remove_key(self, name: str, body: Json) -> Any:
        return {"name": (await self._keys.remove(name)).name}

    # signing keys

    async def _list_signing_keys(self, name: str, body: Json) -> Any:
        return [
            {
                "kid": key.kid,
                "created": _seconds(key.created_at),
                "signs": key.needed_until is None,
                "neededUntil": _seconds(key.needed_until),
                "needed": key.is_needed,
            }
            for key in await signing_keys(self.store)
        ]

    async def _rotate(self, name: str, body: Json) -> Any:
        return {"kid": await rotate_key(self.store)}

    async def _remove_signing_key(self, name: str, body: Json) -> Any:
        await remove_key(self.store, name, at_once=body.get("atOnce") is True)
        return {"kid": name}

    # trusted documents

    async def _list_documents(self, name: str, body: Json) -> Any:
        return [
            {
                "hash": HASH_PREFIX + document.hash,
                "name": document.name,
                "text": document.body,
                "created": document.created_at,
            }
            for document in await all_documents(self.store)
        ]

    async def _add_documents(self, name: str, body: Json) -> Any:
        entries = [DocumentEntry("document", text) for text in _texts(body, "documents")]
        view, viewer = self._widest(self.model)
        schema = build_schema(view)
        faults = [fault for entry in entries for fault in document_faults(entry, view, schema, viewer, self.checks)]
        if faults or not entries:
            found = [Fault(("body", "documents"), fault) for fault in faults or ["expected documents"]]
            raise Refusal(Code.BAD_USER_INPUT, "No document was added.", found)
        made = [
            TrustedDocument(new.hash, ", ".join(n or "-" for n in operations_of(new.text)), new.text, unix_time())
            for new in {entry.hash: entry for entry in entries}.values()
        ]
        return {"added": [HASH_PREFIX + hash for hash in await add_documents(self.store, made)]}

    async def _remove_document(self, name: str, body: Json) -> Any:
        hash = name.removeprefix(HASH_PREFIX)
        if not is_hash(hash):
            raise Refusal(Code.NOT_FOUND, "There is no such document.")
        return {"hash": HASH_PREFIX + (await remove_documents(self.store, [hash]))[0].hash}

    # webhooks

    async def _list_webhooks(self, name: str, body: Json) -> Any:
        return [_webhook(status) for status in await manage.statuses(self.store)]

    async def _add_webhook(self, name: str, body: Json) -> Any:
        roles, user = self._roles(body), checked_user(_text_or_none(body, "user"))
        webhook, secret = await manage.add(
            WatchEngine(self._engine),
            _text(body, "name"),
            _text(body, "url"),
            _text(body, "on"),
            (_text_or_none(body, "query") or "").removeprefix("?"),
            fixed_owner(roles, user),
            allowed=self._webhook_networks,
        )
        return {"name": webhook.name, "secret": secret}

    async def _replay_webhook(self, name: str, body: Json) -> Any:
        if body != {"replay": True}:
            raise bad_member("", "expected replay: true")
        webhook, count = await manage.replay(self.store, name)
        return {"name": webhook.name, "replayed": count}

    async def _remove_webhook(self, name: str, body: Json) -> Any:
        return {"name": (await manage.remove(self.store, name)).name}

    # migrations

    async def _migrations(self, name: str, body: Json) -> Any:
        status = await migration_status(self.model, self.store)
        return {
            "migrations": [
                {"name": migration.name, "state": migration.state, "at": migration.at}
                for migration in status.migrations
            ],
            "differences": status.differences,
            "modelDiffers": status.model_differs,
        }

    @staticmethod
    def _widest(model: Model) -> Any:
        role = max(model.role_names, key=lambda name: (name == "admin", len(model.viewer_as(name).roles)))
        return model.view_as(role), model.viewer_as(role)

    # what all of them take

    def _roles(self, body: Json) -> list[str]:
        return _known(_texts(body, "roles"), self.model.roles, "roles")

    def _scopes(self, body: Json, others: Iterable[str] = ()) -> list[str]:
        return _known(_texts(body, "scopes"), {*self.model.scopes, *others}, "scopes")


def _known(names: list[str], known: Iterable[str], what: str) -> list[str]:
    unknown = [name for name in names if name not in {*known}]
    if unknown:
        raise bad_member(what, f"expected {what} of the model, got {unknown[0][:80]!r}")
    return names


def _account(account: Account) -> Json:
    return {
        "email": account.email,
        "user": account.user_id,
        "roles": list(account.roles),
        "disabled": account.disabled_at is not None,
        "password": account.password is not None,
        "created": account.created_at,
    }


def _client(client: ClientRecord, details: ClientDetails | None) -> Json:
    return {
        "name": client.name,
        "id": client.id,
        "confidential": client.secret is not None,
        "device": details is not None and bool(details.device),
        "expires": details.expires_at if details is not None else None,
        "redirects": list(client.redirects),
        "roles": list(client.roles),
        "scopes": list(client.scopes),
        "created": client.created_at,
    }


def _webhook(status: WebhookStatus) -> Json:
    webhook = status.webhook
    return {
        "name": webhook.name,
        "on": f"{webhook.resource}?{webhook.query}" if webhook.query else webhook.resource,
        "url": webhook.url,
        "state": status.state,
        "pending": status.pending,
        "dead": status.dead,
        "delivered": webhook.delivered_at,
        "reason": webhook.reason,
    }


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())


def bad_member(name: str, message: str) -> Refusal:
    """The refusal of a member of the body."""
    return Refusal(Code.BAD_USER_INPUT, "The body is not valid.", [Fault(("body", *filter(None, [name])), message)])


def _text(body: Json, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise bad_member(name, "expected a text")
    return value


def _text_or_none(body: Json, name: str) -> str | None:
    return None if body.get(name) in (None, "") else _text(body, name)


def _texts(body: Json, name: str) -> list[str]:
    values = body.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise bad_member(name, "expected a list of texts")
    return values
