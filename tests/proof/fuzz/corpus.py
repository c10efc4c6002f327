"""Good requests: every route, method, style and way of sending, by all kinds of callers. Others are made from these."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from tests.proof.fuzz import odd
from tests.proof.fuzz.ground import PERSISTED, REDIRECT, Ground
from tests.proof.fuzz.sample import Sample, frame, frames, handshake, sample

RESPONSE = "application/graphql-response+json"
STREAM = "text/event-stream"
FORM = "application/x-www-form-urlencoded"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
INIT = {"type": "connection_init"}
WATCH = "subscription { postChanged(kinds: [CREATED]) { cursor kind rowId at post { title } } }"
DOCUMENTS = (
    "{ users { name posts { title comments { body author { name } } } } }",
    "query Q($n: Int = 2, $w: PostWhere, $b: Boolean!) { posts(first: $n, where: $w) { ...F @include(if: $b) } } "
    "fragment F on Post { id author { name } comments(first: 1, orderBy: [{body: DESC}]) { body } }",
    'query { a: user(id: "x") { __typename } usersConnection(last: 2, where: {name: {in: ["Ann", "Ben"]}, or: []}) '
    "{ totalCount pageInfo { hasNextPage endCursor } edges { cursor node { posts(offset: 1) { title } } } } }",
    '{ __schema { queryType { name } } __type(name: "User") { fields { name args { name type { ofType { name } } } } } }',
    '{ ordersConnection(where: {total: {gte: "10.00"}, customer: {posts: {some: {title: {contains: "a"}}}}}) '
    "{ nodes { id status total note customer { ... on User { name @skip(if: false) } } } } }",
)


class Corpus:
    """The good requests of a service. Each draw names other rows."""

    def __init__(self, ground: Ground, random: Random) -> None:
        self.ground = ground
        self.random = random
        self._makers = (
            self._reads,
            self._lists,
            self._changes,
            self._orders,
            self._patches,
            self._graphql,
            self._mutations,
            self._persisted,
            self._followed,
            self._sockets,
            self._oauth,
            self._wire,
            self._fixed,
        )

    def draw(self) -> Sample:
        """Any of them."""
        return self.random.choice(list(self.random.choice(self._makers)()))

    def all(self) -> list[Sample]:
        """Each of them once."""
        return [each for make in self._makers for each in make()]

    # what is named

    def _user(self) -> str:
        return self.random.choice(self.ground.users)

    def _post(self) -> str:
        return self.random.choice(self.ground.posts)

    def _comment(self) -> str:
        return self.random.choice(self.ground.comments)

    def _order(self) -> str:
        return self.random.choice(self.ground.orders)

    def _token(self) -> str:
        name = self.random.choice(
            ("admin", "admin", "admin", "staff", "staff", "user", "user", "user", "reader", "late", "", "")
        )
        return self.ground.secrets[name] if name else ""

    @property
    def _admin(self) -> str:
        return self.ground.secrets["admin"]

    # the resource style

    def _reads(self) -> Iterator[Sample]:
        secrets, token = self.ground.secrets, self._token()
        yield sample("GET", f"/users/{self._user()}", token=token)
        fields = "name,recent:posts[first=5;sort=-createdAt](title,comments(author(name),body))"
        yield sample("GET", f"/users/{self._user()}?fields={fields}", token=token)
        yield sample("GET", f"/posts/{self._post()}", token=token, if_none_match=f'W/"1.x", {secrets["tag"]}')
        yield sample("HEAD", f"/comments/{self._comment()}?fields=*,post(title)", token=token, accept="*/*;q=0.1")
        yield sample("GET", f"/orders/{self._order()}", token=token, prefer="change-cursor; x=1, wait=5")
        yield sample(
            "OPTIONS", f"/posts/{self._post()}", origin="http://example.com", access_control_request_method="PUT"
        )
        yield sample("GET", f"/users/{self.ground.users[1]}", token=self._admin, if_none_match=secrets["tag"])

    def _lists(self) -> Iterator[Sample]:
        secrets, token = self.ground.secrets, self._token()
        where = quote(
            json.dumps({"or": [{"post": {"title": {"in": ["a", "b"]}}}, {"not": {"body": {"isNull": True}}}]})
        )
        yield sample(
            "GET",
            f"/users/{self._user()}/posts?title[ne]=x&sort=-title,createdAt&first=2&offset=1&count=exact",
            token=token,
        )
        yield sample(
            "GET",
            "/posts?published=true&body[contains]=a%25b&createdAt[gte]=2026-01-01T00:00:00Z&version[in]=1,2&last=3",
            token=token,
        )
        yield sample("GET", f"/comments?where={where}", token=token, accept="application/json, text/html;q=0.5")
        yield sample("GET", f"/posts?sort=-title&first=3&fields=id&after={secrets['cursor']}", token=self._admin)
        yield sample(
            "GET",
            "/orders?status=paid&total[gte]=100&fields=total,customer(name,posts[where=%257B%257D](id))",
            token=token,
        )
        yield sample("HEAD", "/users?name[startsWith]=A&first=100&count=exact", token=token, prefer="change-cursor")

    def _changes(self) -> Iterator[Sample]:
        token, number = self._token(), self.random.randrange(10**9)
        user = {"name": "Ann", "email": f"a{number}@example.com"}
        post = {"authorId": self.ground.users[0], "title": "é 😀", "body": "x\ny", "published": True}
        yield sample("POST", "/users", token=self._admin, body=user)
        yield sample("POST", "/users", token=self._admin, body=[user, {**user, "email": f"b{number}@example.com"}])
        yield sample(
            "POST", "/posts?fields=id,author(name)", token=token, body=post, idempotency_key=f'"k{number % 50}"'
        )
        yield sample(
            "POST",
            "/comments",
            token=token,
            body={"postId": self._post(), "authorId": self.ground.users[0], "body": "so"},
        ).in_chunks(7)
        yield sample(
            "PUT", f"/posts/{self._post()}", token=self._admin, body={**post, "version": 1}, if_match='"1.abc", W/"2.x"'
        )
        yield sample(
            "PUT", f"/users/{self._user()}", token=token, body=user, content_type="application/json; charset=utf-8"
        )
        yield sample("DELETE", f"/comments/{self._comment()}", token=token, prefer="return=representation")
        yield sample("DELETE", f"/users/{self._user()}", token=token, if_match='"999.x"')

    def _orders(self) -> Iterator[Sample]:
        token = self._token()
        order = {"customerId": self.ground.users[0], "total": "12.50", "currency": "EUR", "note": None}
        yield sample("POST", "/orders", token=token, body=order)
        yield sample("PATCH", f"/orders/{self._order()}", token=token, body={"status": "cancelled"}, content_type=MERGE)
        yield sample("PATCH", f"/orders/{self._order()}", token=self._admin, body={"note": "x", "internalNote": "y"})
        yield sample("DELETE", f"/orders/{self._order()}", token=token, if_match="*")

    def _patches(self) -> Iterator[Sample]:
        steps = [
            {"op": "test", "path": "/name", "value": "Ann"},
            {"op": "replace", "path": "/name", "value": "Bo"},
            {"op": "copy", "from": "/name", "path": "/email"},
            {"op": "move", "from": "/name", "path": "/name"},
            {"op": "add", "path": "/a~1b/~0/-", "value": {}},
            {"op": "remove", "path": ""},
        ]
        some = self.random.sample(steps, self.random.randint(1, 4))
        yield sample("PATCH", f"/users/{self._user()}", token=self._admin, body=some, content_type=JSON_PATCH)
        yield sample(
            "PATCH",
            f"/posts/{self._post()}",
            token=self._token(),
            body={"title": "T", "published": None},
            content_type=MERGE,
        )

    # the query style

    def _graphql(self) -> Iterator[Sample]:
        document, token = self.random.choice(DOCUMENTS), self._token()
        variables = {"n": 2, "b": True, "w": {"title": {"ne": "x"}, "and": []}}
        whole = {"query": document, "variables": variables, "operationName": None, "extensions": {}}
        yield sample("POST", "/graphql", token=token, body=whole, accept=RESPONSE)
        yield sample("POST", "/graphql", token=token, body={"query": document}, accept="application/json").in_chunks(16)
        yield sample(
            "POST", "/graphql", token=token, body=whole, accept=f"{RESPONSE};q=0.9, */*;q=0.1", prefer="change-cursor"
        )
        by_get = urlencode({"query": document, "variables": json.dumps(variables)}, quote_via=quote)
        yield sample("GET", f"/graphql?{by_get}", token=token, accept=RESPONSE)
        yield sample("HEAD", f"/graphql?{by_get}", token=token)
        yield sample("POST", "/graphql", token=token, body=[{"query": "{__typename}"}] * 2)
        yield sample("POST", "/graphql", body=f"query={quote(document)}", content_type=FORM)

    def _mutations(self) -> Iterator[Sample]:
        token, number = self._token(), self.random.randrange(10**9)
        create = "mutation($i: PostCreate!) { createPost(input: $i) { id title author { name } } }"
        made = {"authorId": self.ground.users[0], "title": "T", "body": "b"}
        yield self._mutation(create, {"i": made}, token, idempotency_key=f"g{number % 50}")
        update = f'mutation {{ updateUser(id: "{self._user()}", patch: {{name: "N"}}, ifVersion: 1) {{ id version posts {{ title }} }} }}'
        yield self._mutation(update, {}, token)
        delete = f'mutation {{ a: deleteComment(id: "{self._comment()}") {{ body }} b: deleteOrder(id: "{self._order()}", ifVersion: 99) {{ id }} }}'
        yield self._mutation(delete, {}, self._admin)
        replace = "mutation M($id: ID!, $i: OrderReplace!) { replaceOrder(id: $id, input: $i) { total status } }"
        order = {"customerId": self.ground.users[0], "total": "1.00", "currency": "EUR", "status": "paid"}
        yield self._mutation(replace, {"id": self._order(), "i": order}, token)

    def _mutation(self, document: str, variables: Any, token: str, **headers: str) -> Sample:
        return sample(
            "POST",
            "/graphql",
            token=token,
            body={"query": document, "variables": variables},
            accept=RESPONSE,
            **headers,
        )

    def _persisted(self) -> Iterator[Sample]:
        number, token = self.ground.secrets["hash"], self._token()
        kept = {"persistedQuery": {"version": 1, "sha256Hash": number}}
        yield sample("GET", f"/graphql?{urlencode({'extensions': json.dumps(kept)})}", token=token, accept=RESPONSE)
        yield sample("GET", f"/graphql?documentId=sha256:{number}&variables=%7B%22n%22:1%7D", token=token)
        yield sample("POST", "/graphql", token=token, body={"extensions": kept, "variables": {"n": 3}}, accept=RESPONSE)
        yield sample("POST", "/graphql", token=token, body={"query": PERSISTED, "extensions": kept}, accept=RESPONSE)
        yield sample(
            "POST",
            "/graphql",
            token=token,
            body={"documentId": f"sha256:{number}", "operationName": "Kept"},
            accept=RESPONSE,
        )

    # changes that are followed

    def _followed(self) -> Iterator[Sample]:
        mark, token = self.ground.secrets["bookmark"], self._token()
        yield sample("GET", "/posts/changes?kinds=CREATED,UPDATED&first=2&fields=title", token=token)
        yield sample("GET", f"/posts/changes?after={mark}", token=token, accept="application/json")
        yield sample("GET", "/users/changes", token=token, accept=STREAM, last_event_id=mark)
        yield sample("GET", f"/orders/changes?where=%7B%7D&id={self._order()}", token=self._admin, accept=STREAM)
        yield sample("HEAD", "/comments/changes", token=token, accept=STREAM)
        yield sample("POST", "/graphql", token=token, body={"query": WATCH}, accept=STREAM)
        yield sample("GET", f"/graphql?query={quote(WATCH)}", token=token, accept=STREAM, last_event_id=mark)
        yield sample("POST", "/graphql", token=token, body={"query": "{ __typename }"}, accept=STREAM)

    def _sockets(self) -> Iterator[Sample]:
        token = self._token()
        ask = {
            "id": "1",
            "type": "subscribe",
            "payload": {"query": self.random.choice((WATCH, *DOCUMENTS)), "variables": {"b": False}},
        }
        init = {**INIT, "payload": {"authorization": f"Bearer {self._token()}"}}
        yield handshake(frames([INIT, ask]), token)
        yield handshake(frames([init, ask, {**ask, "id": "2"}, {"type": "complete", "id": "1"}]))
        yield handshake(frames([INIT, {"type": "ping", "payload": {"a": 1}}, {"type": "pong"}]), token)
        yield handshake(frame(b"x", 9) + frame(b"\x03\xe8bye", 8), token)
        yield handshake(frames([INIT, *(self._odd_message(ask) for _ in range(3))]), token)
        yield handshake(frames([ask]), origin="http://127.0.0.1")
        yield handshake(
            b"",
            token,
            sec_websocket_protocol="graphql-ws, graphql-transport-ws",
            sec_websocket_extensions="permessage-deflate",
        )

    def _odd_message(self, ask: dict[str, Any]) -> Any:
        """A message with something odd in it; as frames are masked, they are not changed later on."""
        random = self.random
        match random.randrange(6):
            case 0:
                return {**ask, random.choice(("id", "type", "payload", "x")): random.choice(odd.JSON)}
            case 1:
                key = random.choice(("query", "variables", "operationName", "extensions", "x"))
                return {
                    **ask,
                    "id": str(random.randrange(3)),
                    "payload": {**ask["payload"], key: random.choice(odd.JSON)},
                }
            case 2:
                return random.choice((*odd.JSON_TEXTS, '{"type":"ping","type":"pong"}')).encode()
            case 3:
                return {
                    "type": random.choice(("complete", "connection_init", "next", "error", "pong", "nope", "")),
                    "id": random.choice(("1", "", "x" * 300)),
                }
            case 4:
                document = random.choice(DOCUMENTS).replace(random.choice("{}():$"), random.choice(odd.GRAPHQL), 1)
                return {**ask, "id": "9", "payload": {"query": document}}
        return random.choice(odd.BYTES)

    # the rest

    def _oauth(self) -> Iterator[Sample]:
        secrets = self.ground.secrets
        basic = base64.b64encode(f"{secrets['client_id']}:{secrets['client_secret']}".encode()).decode()
        asked = {
            "response_type": "code",
            "client_id": secrets["client_id"],
            "redirect_uri": REDIRECT,
            "scope": "read",
            "state": "s",
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "code_challenge_method": "S256",
        }
        form = {"grant_type": "client_credentials", "scope": "read"}
        mine = {"client_id": secrets["client_id"], "client_secret": secrets["client_secret"]}
        yield self._form("token", form, authorization=f"Basic {basic}")
        yield self._form("token", {**form, **mine})
        yield self._form(
            "token",
            {
                "grant_type": "authorization_code",
                "code": "x",
                "redirect_uri": REDIRECT,
                "code_verifier": "v" * 43,
                **mine,
            },
        )
        yield self._form("token", {"grant_type": "refresh_token", "refresh_token": "x", **mine})
        yield self._form("revoke", {"token": "x", "token_type_hint": "refresh_token", **mine})
        yield self._form("introspect", {"token": secrets["user"], **mine})
        yield sample("GET", f"/oauth/authorize?{urlencode(asked)}", cookie="diptych=abc; x=y")
        yield self._form(
            "login", {"request": urlencode(asked), "token": "x"}, cookie="diptych=abc", origin="http://127.0.0.1"
        )
        yield self._form(
            "authorize", {"request": urlencode(asked), "token": "x", "decision": "allow"}, cookie="diptych=abc"
        )
        yield sample("GET", "/.well-known/oauth-authorization-server")
        yield sample("GET", "/.well-known/jwks.json")

    def _form(self, path: str, form: dict[str, str], **headers: str) -> Sample:
        return sample("POST", f"/oauth/{path}", body=urlencode(form), content_type=FORM, **headers)

    def _wire(self) -> Iterator[Sample]:
        """Ways of sending that are out of the ordinary."""
        token, query = self._token(), {"query": "{ users(first: 1) { name } }"}
        h2c = {"upgrade": "h2c", "connection": "Upgrade, HTTP2-Settings", "http2_settings": "AAMAAABkAAQAoAAA"}
        yield sample("POST", "/graphql", token=token, body=query, **h2c)
        yield sample("GET", "/users?first=1", token=token, **h2c)
        yield sample("POST", "/graphql", token=token, body=query, expect="100-continue")
        yield sample("POST", "/graphql", token=token, body=query, te="trailers", trailer="x-sum").in_chunks(1000)
        yield sample("GET", "/users?first=1").then(sample("GET", "/posts?first=1", token=token).raw())
        yield sample("POST", "/graphql", body=query).then(sample("POST", "/graphql", body=query, token=token).raw())
        yield sample("GET", "/users?first=1", connection="keep-alive", keep_alive="timeout=5")
        yield sample(
            "GET", "http://127.0.0.1/users?first=1", x_forwarded_for="10.0.0.1", forwarded="for=10.0.0.1;proto=https"
        )
        yield sample("GET", "/users/../posts/./%2e%2e//x%2fy?%00", token=token)

    def _fixed(self) -> Iterator[Sample]:
        token = self._token()
        yield sample("GET", "/openapi.json", token=token, if_none_match="*")
        yield sample("GET", "/health/ready", accept="application/json")
        yield sample(
            "OPTIONS",
            "/graphql",
            origin="http://example.com",
            access_control_request_method="POST",
            access_control_request_headers="content-type",
        )
        yield sample("TRACE", "/users", token=token)
        yield sample("GET", "/console", token=token)
        yield sample("GET", "/metrics", token=token)
