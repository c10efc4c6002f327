"""The files of the console: its page, and its scripts and styles, which the package contains.

    /console/               the page, with a nonce and the prefix of the service filled in; never stored
    /console/data/posts     the same page: its script reads the path
    /console/assets/…       a file of the build, whose name has a hash of its content: stored for good

Names are looked up in a table of the files that there are, so no path leads elsewhere. The policy of the page allows
scripts and requests of this service alone, no inline script or style without the nonce, and no text as a script sink
(Trusted Types).
"""

from __future__ import annotations

import gzip
import mimetypes
import secrets
from functools import cache
from html import escape
from pathlib import Path

from msgspec import Struct

from diptych.api.reply import Header, Reply
from diptych.serve.http.coding import accepted_coding
from diptych.serve.http.request import Request

ROOT = Path(__file__).parents[2] / "console"
"""The directory of the build."""
_INDEX = "index.html"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; "
    "worker-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_FILE_POLICY = b"default-src 'none'; frame-ancestors 'none'"
_HEAD: tuple[Header, ...] = (
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_IMMUTABLE: tuple[Header, ...] = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"vary", b"Accept-Encoding"),
)


_REVALIDATED: tuple[Header, ...] = ((b"cache-control", b"no-cache"), (b"vary", b"Accept-Encoding"))


class File(Struct, frozen=True):
    """A file of the build; `packed` is empty where gzip makes it no smaller."""

    body: bytes
    packed: bytes
    kind: bytes


@cache
def files() -> dict[str, File]:
    """All files of the build but its page, by their path below /console/; read and compressed once."""
    return {
        path.relative_to(ROOT).as_posix(): _read(path)
        for path in sorted(ROOT.rglob("*"))
        if path.is_file() and path.name != _INDEX
    }


def _read(path: Path) -> File:
    body = path.read_bytes()
    packed = gzip.compress(body, 9, mtime=0)
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return File(body, packed if len(packed) < len(body) else b"", (kind + charset).encode())


@cache
def is_built() -> bool:
    """Has the package a build of the console, or only a page that says that it has none?"""
    return (ROOT / "assets").is_dir()


@cache
def _index() -> str:
    return (ROOT / _INDEX).read_text("utf-8")


def file_reply(request: Request, name: str) -> Reply | None:
    """A file of the build; None if there is none of this name."""
    file = files().get(name)
    if file is None:
        return None
    kept = _IMMUTABLE if name.startswith("assets/") else _REVALIDATED
    head = (*_HEAD, *kept, (b"content-type", file.kind), (b"content-security-policy", _FILE_POLICY))
    accepts = request.headers.get(b"accept-encoding", b"")
    if file.packed and b"gzip" in accepts and accepted_coding(accepts):
        return Reply(200, (*head, (b"content-encoding", b"gzip")), file.packed)
    return Reply(200, head, file.body)


def console_page(prefix: str) -> Reply:
    """The page, for a service below this prefix."""
    nonce = secrets.token_urlsafe(18)
    root = escape(prefix)
    body = _index().replace("__NONCE__", nonce).replace("__PREFIX__", root).replace('="./', f'="{root}/console/')
    head = (
        *_HEAD,
        (b"content-type", b"text/html; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", _POLICY.replace("{nonce}", nonce).encode()),
    )
    return Reply(200, head, body.encode())
