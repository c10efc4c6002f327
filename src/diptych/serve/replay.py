"""`Idempotency-Key`: the answer to a change is kept with its effect, and given again to the same request."""

from __future__ import annotations

import hashlib
import zlib

import msgspec

from diptych.api.reply import Header, Reply
from diptych.api.rest.precondition import idempotency_key
from diptych.db.replays import Claim, Kept
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.serve.http import Request
from diptych.transact import Keeping

_REPLAYED: Header = (b"idempotency-replayed", b"true")
_SHORT = 512
"""Bytes up to which a body is kept as it is."""
_COMPRESSED = ("", "zlib")
_head = msgspec.json.Decoder(list[tuple[str, str]])


def key_of(request: Request, caller: Caller) -> str | None:
    """The key under which the answer is kept, if the request asks for it."""
    key = idempotency_key(request.headers.get(b"idempotency-key"))
    if key is not None and not caller.name:
        raise Refusal(Code.BAD_REQUEST, "An Idempotency-Key needs a token: it belongs to whoever sends it.")
    return key


def keeping(request: Request, caller: Caller, body: bytes) -> Keeping[Reply] | None:
    """How the answer is kept. It is bound to all that makes the request, and to what the caller's token may see:
    a token that may see less gets no answer that was made for one that may see more."""
    key = key_of(request, caller)
    if key is None:
        return None
    url = f"{request.path}?{request.query}" if request.query else request.path
    sight = repr((caller.signature.stable(), *caller.viewer.all_known()))
    print_ = hashlib.sha256(b"\0".join((request.method.encode(), url.encode(), sight.encode(), body))).hexdigest()
    return Keeping(Claim(caller.name, key, print_), _pack, _unpack)


def _pack(reply: Reply) -> Kept:
    """A long body is compressed, which stands in the head, where no header has an empty name."""
    head = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in reply.headers]
    body = reply.body
    if len(body) > _SHORT:
        head.append(_COMPRESSED)
        body = zlib.compress(body, 1)
    return Kept(reply.status, msgspec.json.encode(head).decode(), body)


def _unpack(kept: Kept) -> Reply:
    pairs = _head.decode(kept.head)
    body = zlib.decompress(kept.body) if _COMPRESSED in pairs else kept.body
    head = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs if name]
    return Reply(kept.status, (*head, _REPLAYED), body)
