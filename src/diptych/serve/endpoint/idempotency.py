"""`Idempotency-Key`: the response to a write is stored in its transaction, and replayed to the same request."""

from __future__ import annotations

import hashlib
import zlib

import msgspec

from diptych.api.reply import Header, Reply
from diptych.api.rest.precondition import idempotency_key
from diptych.db.idempotency import IdempotencyClaim, StoredReply
from diptych.engine.write import IdempotentReply
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.serve.http.request import Request

_REPLAYED: Header = (b"idempotency-replayed", b"true")
_SHORT = 512
"""Bytes up to which a body is stored uncompressed."""
_COMPRESSED = ("", "zlib")
_head = msgspec.json.Decoder(list[tuple[str, str]])


def sent_key(request: Request, caller: Caller) -> str | None:
    """The idempotency key of a request, if it has one."""
    key = idempotency_key(request.headers.get(b"idempotency-key"))
    if key is not None and not caller.name:
        raise Refusal(Code.BAD_REQUEST, "An Idempotency-Key needs a token: keys are stored for each caller.")
    return key


def keeping(request: Request, caller: Caller, body: bytes) -> IdempotentReply[Reply] | None:
    """How to store and replay the response, or None without a key.

    The fingerprint covers the whole request and what the caller's token may see: a token with fewer rights gets no
    response that was made for one with more.
    """
    key = sent_key(request, caller) if b"idempotency-key" in request.headers else None
    if key is None:
        return None
    url = f"{request.path}?{request.query}" if request.query else request.path
    visible = repr((caller.signature.stable(), *caller.viewer.all_known()))
    fingerprint = hashlib.sha256(
        b"\0".join((request.method.encode(), url.encode(), visible.encode(), body))
    ).hexdigest()
    return IdempotentReply(IdempotencyClaim(caller.name, key, fingerprint), _pack, _unpack)


def _pack(reply: Reply) -> StoredReply:
    """Compress a long body; a header with an empty name marks it."""
    head = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in reply.headers]
    body = reply.body
    if len(body) > _SHORT:
        head.append(_COMPRESSED)
        body = zlib.compress(body, 1)
    return StoredReply(reply.status, msgspec.json.encode(head).decode(), body)


def _unpack(stored: StoredReply) -> Reply:
    pairs = _head.decode(stored.head)
    body = zlib.decompress(stored.body) if _COMPRESSED in pairs else stored.body
    head = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs if name]
    return Reply(stored.status, (*head, _REPLAYED), body)
