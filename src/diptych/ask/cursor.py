"""Pagination cursors: opaque, signed, and bound to the list that they were made for.

A cursor holds the sort keys of one row as JSON, after a signature. The signing key is derived from the store's secret
and from what the cursor is bound to (the resource, its sort, its filter with its values and the viewer), but not from
the page size or the fields. So a cursor of another list, another filter or another viewer does not verify. The database
signs cursors while it writes an answer, so a page needs no second query, and Python those of a page by itself (`sign`);
SHA-256 over key and text, truncated to twelve bytes, is what both databases can compute. Of a long text, a cursor
holds the beginning and a digest, so that it always fits into a request head and a GraphQL literal.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from diptych.ask.nodes import OrderBy, Read
from diptych.model.aggregates import expr_scalar
from diptych.model.defs import Resources
from diptych.model.rules.expr import And, Col, Compare, Expr, Has, IsNull, Matches, Not, Or, Slot
from diptych.model.scalars import FLOAT, INTEGER_ID, Scalar

_MAC = 12
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
CUT = 80
"""The most characters of a text that a cursor holds. Five such keys, escaped in JSON, and an id make a cursor of less
than 4 KiB: it fits into a GraphQL literal, and two of them into a request head."""
_LAST = chr(0x10FFFF)
_keys = msgspec.json.Decoder(list[Any])


def sort_keys(read: Read) -> tuple[OrderBy, ...]:
    """The complete sort of a list: the requested keys, then the id as the tie-breaker; of groups, their keys."""
    keys: list[OrderBy] = []
    if read.groups is not None:
        sorted_by = {order.by for order in read.order}
        return (*read.order, *(OrderBy(key) for key in read.groups.by if key not in sorted_by))
    for order in read.order:
        keys.append(order)
        if order.by == Col(("id",)):
            return tuple(keys)
    return (*keys, OrderBy(Col(("id",))))


def key_scalars(read: Read, resources: Resources) -> tuple[Scalar, ...]:
    """The types of the sort keys of an Ask as the client sent it (before rules are added)."""
    resource = resources[read.resource]
    scalars = (expr_scalar(key.by, resource, resources) for key in sort_keys(read))
    return tuple(scalar for scalar in scalars if scalar is not None)


def binding(read: Read) -> bytes:
    """The part of an Ask that its cursors are bound to, without the values."""
    bound: tuple[Any, ...] = (read.resource, read.order, _without_indexes(read.where))
    if read.groups is not None:
        bound = (*bound, read.groups.by, _without_indexes(read.groups.having))
    if read.deleted:
        bound = (*bound, "deleted")
    return repr(bound).encode()


def bound_slots(read: Read) -> tuple[int, ...]:
    """The indexes of the slots whose values the cursors of a list are bound to."""
    return where_slots(read.where) + (() if read.groups is None else where_slots(read.groups.having))


def where_slots(expr: Expr) -> tuple[int, ...]:
    """The indexes of the slots in a filter; cursors are bound to their values too."""
    match expr:
        case Slot(index):
            return (index,)
        case Compare(_, left, right):
            return where_slots(left) + where_slots(right)
        case And(of) | Or(of):
            return tuple(index for part in of for index in where_slots(part))
        case Not(of) | IsNull(of) | Has(where=of):
            return where_slots(of)
        case Matches(text=text):
            return where_slots(text)
    return ()


def _without_indexes(expr: Expr) -> Any:
    """The filter without slot indexes, since those depend on the rest of the Ask."""
    match expr:
        case Slot(_, scalar, many):
            return ("slot", scalar.name, many)
        case Compare(op, left, right):
            return (op, _without_indexes(left), _without_indexes(right))
        case And(of) | Or(of):
            return (type(expr).__name__, *map(_without_indexes, of))
        case Not(of) | IsNull(of):
            return (type(expr).__name__, _without_indexes(of))
        case Has(relation, where):
            return ("Has", relation, _without_indexes(where))
        case Matches(of, text):
            return ("Matches", of, _without_indexes(text))
    return expr


class Cut(NamedTuple):
    """A truncated sort key: the beginning of a long text, and the digest of the whole."""

    floor: str
    digest: str

    @property
    def ceiling(self) -> str:
        """The smallest text that sorts after every text with this beginning."""
        stem = self.floor.rstrip(_LAST)
        if not stem:
            return self.floor + _LAST
        point = ord(stem[-1]) + 1
        return stem[:-1] + chr(0xE000 if point == 0xD800 else point)


def row_version(values: bytes | None) -> int | None:
    """A number of 31 bits that changes with the values of a row, written as one text."""
    return None if values is None else int.from_bytes(hashlib.sha256(values).digest()[:4], "big") & 0x7FFFFFFF


def key_digest(text: bytes | None) -> str | None:
    """The digest of a long key, as SQLite calls it and PostgreSQL computes it in SQL."""
    return None if text is None else hashlib.sha256(text).hexdigest()[:32]


def derive(secret: bytes, *parts: bytes) -> bytes:
    """Derive the key that signs the cursors of one list."""
    mac = hashlib.blake2b(key=secret, digest_size=32)
    for part in parts:
        mac.update(len(part).to_bytes(4, "big") + part)
    return mac.digest()


class AsStored(Struct, frozen=True):
    """A sort key whose stored value is not valid for its type."""

    value: Any


def seal(key: bytes, payload: str) -> str:
    """Sign the sort keys of a row, as the databases do."""
    return sign(key, payload.encode())


def sign(key: bytes, raw: bytes) -> str:
    """Sign bytes, as SQLite calls it and PostgreSQL computes it in SQL."""
    signed = hashlib.sha256(key + raw).digest()[:_MAC] + raw
    return binascii.b2a_base64(signed, newline=False).translate(_URL_SAFE).rstrip(b"=").decode()


def unseal(key: bytes, cursor: str, scalars: Sequence[Scalar]) -> tuple[Any, ...]:
    """The sort keys in a cursor. Raises ValueError if it is not a cursor of this list."""
    try:
        standard = cursor.replace("-", "+").replace("_", "/") + "=" * (-len(cursor) % 4)
        raw = binascii.a2b_base64(standard, strict_mode=True)
        payload = raw[_MAC:]
        if not hmac.compare_digest(hashlib.sha256(key + payload).digest()[:_MAC], raw[:_MAC]):
            raise ValueError
        keys = _keys.decode(payload)
        if len(keys) != len(scalars):
            raise ValueError
        return tuple(map(_key, keys, scalars))
    except (ValueError, KeyError, TypeError, binascii.Error, msgspec.DecodeError):
        raise ValueError("expected a cursor of this list, with this sort and filter") from None


def _key(value: Any, scalar: Scalar) -> Any:
    """Decode one sort key: a value of its type, a truncated text, or an invalid stored value, tagged with its storage
    class. Null is null."""
    if value is None:
        return None
    if isinstance(value, list):
        return Cut(*value)
    if isinstance(value, dict):
        ((kind, stored),) = value.items()
        return AsStored(_STORED[kind](stored, scalar))
    try:
        parsed = scalar.parse(value)
    except ValueError:
        parsed = None
    if parsed is not None and (parsed == value or not isinstance(value, str) or not isinstance(parsed, str)):
        return parsed
    if scalar is INTEGER_ID:
        return AsStored(int(value))
    if isinstance(value, str):  # invalid text in SQLite, as stored
        return AsStored(value)
    raise ValueError


_STORED: Mapping[str, Callable[[str, Scalar], Any]] = {
    "stored": lambda text, scalar: float(text) if scalar is FLOAT else text,
    "text": lambda digits, scalar: bytes.fromhex(digits).decode(),
    "real": lambda digits, scalar: float(bytes.fromhex(digits).decode().replace("Inf", "inf")),
    "integer": lambda digits, scalar: int(bytes.fromhex(digits)),
    "blob": lambda digits, scalar: bytes.fromhex(digits),
}
"""How an invalid stored value is decoded: PostgreSQL writes it as text, SQLite as the hexadecimal of its bytes."""
