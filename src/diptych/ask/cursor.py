"""Cursors: opaque, signed, and bound to the list that they were made for.

A cursor holds the sort keys of one row as JSON, behind a signature. The key of the signature is derived from
the store's secret and from what the cursor is bound to (the resource, its sort, its filter with its values and
the viewer), but not from the page size or the fields. So a cursor of another list, another filter or another
viewer does not open. Databases sign cursors while they write an answer (`seal`), so a page costs no second
look; SHA-256 over key and text, cut to twelve bytes, is what both can do. Of a long text, a cursor holds the beginning
and a digest, so it is never longer than a head or a literal may be.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from diptych.ask.nodes import Order, Read
from diptych.model.defs import ResourceDef
from diptych.model.expr import And, Col, Compare, Expr, Has, IsNull, Not, Or, Slot
from diptych.model.scalars import FLOAT, INTEGER_ID, Scalar

_MAC = 12
CUT = 80
"""Characters of a text that a cursor holds, at most. Five such keys, escaped in JSON, and an id are a cursor of less
than 4 KiB: it fits into a literal of GraphQL, and two of them into a head."""
_LAST = chr(0x10FFFF)
_keys = msgspec.json.Decoder(list[Any])


def sort_keys(read: Read) -> tuple[Order, ...]:
    """The whole sort of a list: the keys that were asked for, and the id to tell equal rows apart."""
    keys: list[Order] = []
    for order in read.order:
        keys.append(order)
        if order.by == Col(("id",)):
            return tuple(keys)
    return (*keys, Order(Col(("id",))))


def key_scalars(read: Read, resource: ResourceDef) -> tuple[Scalar, ...]:
    """The types of the keys of an Ask as the client asked it (before rules are joined)."""
    return tuple(resource.fields[key.by.path[0]].scalar for key in sort_keys(read) if isinstance(key.by, Col))


def binding(read: Read) -> bytes:
    """What of an Ask its cursors are bound to, whatever the values are."""
    return repr((read.resource, read.order, _without_indexes(read.where))).encode()


def where_slots(expr: Expr) -> tuple[int, ...]:
    """The slots of a filter; their values bind its cursors too."""
    match expr:
        case Slot(index):
            return (index,)
        case Compare(_, left, right):
            return where_slots(left) + where_slots(right)
        case And(of) | Or(of):
            return tuple(index for part in of for index in where_slots(part))
        case Not(of) | IsNull(of) | Has(where=of):
            return where_slots(of)
    return ()


def _without_indexes(expr: Expr) -> Any:
    """The filter as a value in which slots are all alike, since their numbers depend on the rest of the Ask."""
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
    return expr


class Cut(NamedTuple):
    """The beginning of a text that was too long for a cursor, and the digest of all of it."""

    floor: str
    digest: str

    @property
    def ceiling(self) -> str:
        """The first text after all that begin alike."""
        stem = self.floor.rstrip(_LAST)
        if not stem:
            return self.floor + _LAST
        point = ord(stem[-1]) + 1
        return stem[:-1] + chr(0xE000 if point == 0xD800 else point)


def digest(text: bytes | None) -> str | None:
    """The digest of a long key: this is what SQLite calls, and what PostgreSQL computes."""
    return None if text is None else hashlib.sha256(text).hexdigest()[:32]


def derive(secret: bytes, *parts: bytes) -> bytes:
    """The key that signs the cursors of one list."""
    mac = hashlib.blake2b(key=secret, digest_size=32)
    for part in parts:
        mac.update(len(part).to_bytes(4, "big") + part)
    return mac.digest()


@dataclass(frozen=True, slots=True)
class AsStored:
    """A sort key that its type does not allow, as the database holds it."""

    value: Any


def seal(key: bytes, payload: str) -> str:
    """Sign the keys of a row, as a database does."""
    return sign(key, payload.encode())


def sign(key: bytes, raw: bytes) -> str:
    """The same of bytes: this is what SQLite calls, and what PostgreSQL computes."""
    signed = hashlib.sha256(key + raw).digest()[:_MAC] + raw
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def unseal(key: bytes, cursor: str, scalars: Sequence[Scalar]) -> tuple[Any, ...]:
    """The keys in a cursor, or ValueError if it is not one of this list."""
    try:
        standard = cursor.replace("-", "+").replace("_", "/") + "=" * (-len(cursor) % 4)
        raw = binascii.a2b_base64(standard, strict_mode=True)
        signed = hashlib.sha256(key + raw[_MAC:]).digest()[:_MAC]
        if not hmac.compare_digest(signed, raw[:_MAC]):
            raise ValueError
        keys = _keys.decode(raw[_MAC:])
        if len(keys) != len(scalars):
            raise ValueError
        return tuple([None if each is None else _key(each, scalar) for each, scalar in zip(keys, scalars, strict=True)])
    except (ValueError, KeyError, TypeError, binascii.Error, msgspec.DecodeError):
        raise ValueError("expected a cursor of this list, with this sort and filter") from None


def _key(value: Any, scalar: Scalar) -> Any:
    """One key: a value of its type, a text that was cut, or, by the name of what it is to the database, whatever the
    row has instead."""
    if isinstance(value, list):
        return Cut(*value)
    if isinstance(value, dict):
        ((kind, stored),) = value.items()
        return AsStored(_STORED[kind](stored, scalar))
    try:
        found = scalar.parse(value)
    except ValueError:
        found = None
    if found is None and scalar is INTEGER_ID:
        return AsStored(int(value))
    if isinstance(value, str) and isinstance(found, str | None) and found != value:  # text of SQLite, as it is
        return AsStored(value)
    if found is None:
        raise ValueError
    return found


_STORED: Mapping[str, Callable[[str, Scalar], Any]] = {
    "stored": lambda text, scalar: float(text) if scalar is FLOAT else text,
    "text": lambda digits, scalar: bytes.fromhex(digits).decode(),
    "real": lambda digits, scalar: float(bytes.fromhex(digits).decode().replace("Inf", "inf")),
    "integer": lambda digits, scalar: int(bytes.fromhex(digits)),
    "blob": lambda digits, scalar: bytes.fromhex(digits),
}
"""How a stored value is read: PostgreSQL writes it as text, SQLite the digits of its bytes."""
