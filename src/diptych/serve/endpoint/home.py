"""The page for people: what is served here, and where. It is at `/` and `/graphql`, for `Accept: text/html`.

It has no script, loads nothing, and cannot be framed. It shows what the caller's role may read, as the documents do.
Every name of a model is escaped, and commands are quoted so that a shell takes no part of them for its own.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from urllib.parse import quote, urlsplit

from diptych.api.graphql.http import OFFERS
from diptych.api.media import negotiate
from diptych.api.reply import JSON_TYPE, PRIVATE, Header, Reply, tag
from diptych.api.sse import STREAM
from diptych.errors import Refusal
from diptych.look.sheet import MARK, style, style_source
from diptych.model.resource_view import ResourceView
from diptych.model.view import View
from diptych.serve.endpoint.account_paths import ACCOUNT
from diptych.serve.endpoint.oauth_paths import OPENID_METADATA
from diptych.serve.http.request import Request, not_modified
from diptych.serve.public_address import issuer_of

HTML = "text/html"
_OFFERS = (*OFFERS, STREAM, HTML)
_MOST = 24
"""Collections that are listed."""
_HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:]+\](?::[0-9]{1,5})?")
_STYLE = style("""
main { max-width: 62rem; margin: 0 auto; padding: clamp(1.25rem, 5vw, 3.5rem) clamp(var(--s4), 4vw, var(--s6)); }
header { margin: 0 0 var(--s6); }
h1 { font-size: clamp(1.7rem, 5vw, 2.4rem); line-height: 1.15; letter-spacing: -0.02em; }
header p { color: var(--soft); font-size: 1.1rem; margin: 0; max-width: 40rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: var(--s4); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: var(--radius);
  box-shadow: var(--shadow); padding: 1.25rem var(--s5); }
section.left { border-top: 3px solid var(--left); }
section.left h2 { color: var(--left); }
section.right { border-top: 3px solid var(--right); }
section.right h2 { color: var(--right); }
section > :last-child { margin-bottom: 0; }
pre { margin: 0 0 var(--s4); padding: var(--s3) var(--s4); background: var(--sunk); border-radius: var(--radius-s);
  white-space: pre-wrap; }
pre code { user-select: all; }
ul.paths { list-style: none; padding: 0; margin: 0 0 var(--s4); display: flex; flex-wrap: wrap; gap: var(--s2); }
ul.paths a { display: inline-block; padding: 0.1rem var(--s2); border: 1px solid var(--line); border-radius: 1rem;
  background: var(--sunk); text-decoration: none; }
a:hover { text-decoration: underline; }
.wide { margin-top: var(--s4); }
dl { display: grid; grid-template-columns: minmax(7rem, auto) 1fr; gap: var(--s2) 1.25rem; margin: 0; }
dt { font-weight: 600; }
dd { margin: 0; color: var(--soft); }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0.1rem; } dd { margin-bottom: var(--s2); } }
""")
_POLICY = (
    f"default-src 'none'; style-src {style_source(_STYLE)}; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
_HEAD: tuple[Header, ...] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


def wants_page(request: Request) -> bool:
    """Does a browser ask for a page, rather than a client for data?"""
    if request.method not in ("GET", "HEAD") or request.query:
        return False
    return negotiate(request.headers.get(b"accept", b""), _OFFERS) == HTML


def home_reply(request: Request, title: str, view: View, base_url: str, *, described: bool) -> Reply:
    """The page, or 304. `described` is whether introspection and the OpenAPI document are there for the caller."""
    body = _page(title, _address(request, base_url), request.root, [*view.resources.values()], described).encode()
    mark = tag(body)
    kept = (*PRIVATE, (b"etag", mark))
    if not_modified(request.headers.get(b"if-none-match"), mark):
        return Reply(304, kept)
    return Reply(200, (*_HEAD, *kept), body)


def root_reply(request: Request, title: str, *, described: bool, console: bool) -> Reply:
    """What programs get at the root: where the documents are, also as links (RFC 8631)."""
    members, links = {"title": title, "graphql": f"{request.root}/graphql"}, []
    if described:
        members["openapi"] = f"{request.root}/openapi.json"
        links.append(f'<{members["openapi"]}>; rel="service-desc"; type="application/json"')
    if console:
        members["console"] = f"{request.root}/console/"
        links.append(f'<{members["console"]}>; rel="service-doc"; type="text/html"')
    head = ((b"content-type", JSON_TYPE), *PRIVATE, *(((b"link", ", ".join(links).encode()),) if links else ()))
    return Reply(200, head, json.dumps(members).encode())


def _address(request: Request, base_url: str) -> str:
    """The address of the service, as the browser knows it."""
    try:
        return issuer_of(base_url, request)
    except Refusal:
        host = request.headers.get(b"host", b"").decode("latin-1")
        return f"https://{host if _HOST.fullmatch(host) else 'your-service'}{request.root}"


def _page(title: str, address: str, root: str, resources: Sequence[ResourceView], described: bool) -> str:
    lead = "One model, two styles of API that always agree: GraphQL and REST."
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n{MARK}\n<h1>{escape(title)}</h1>\n<p>{lead}</p>\n</header>\n"
        f'<div class="panels">\n{_graphql(address, root, resources)}{_rest(address, root, resources)}</div>\n'
        f"{_more(root, described)}</main>\n</body>\n</html>\n"
    )


def _graphql(address: str, root: str, resources: Sequence[ResourceView]) -> str:
    sent = json.dumps({"query": _query(resources)}, ensure_ascii=False)
    command = f"curl {_quoted(address + '/graphql')} \\\n  -H 'content-type: application/json' \\\n  -d {_quoted(sent)}"
    return (
        '<section class="left">\n<h2>GraphQL</h2>\n'
        f"<p>Queries, mutations and subscriptions at <code>{escape(root)}/graphql</code>, by POST or GET, "
        "as server-sent events, or over a WebSocket (<code>graphql-transport-ws</code>).</p>\n"
        f"{_command(command)}</section>\n"
    )


def _query(resources: Sequence[ResourceView]) -> str:
    if not resources:
        return "{ __typename }"
    names = ["id", *[name for name, field in resources[0].fields.items() if not field.field.is_server_set][:2]]
    return f"{{ {resources[0].resource.many}(first: 2) {{ {' '.join(names)} }} }}"


def _rest(address: str, root: str, resources: Sequence[ResourceView]) -> str:
    paths = [_path(resource) for resource in resources]
    command = f"curl {_quoted(f'{address}/{paths[0]}?first=2' if paths else f'{address}/health/live')}"
    items = "".join(f'<li><a href="{escape(root)}/{path}"><code>/{path}</code></a></li>\n' for path in paths[:_MOST])
    more = f"<p>And {len(paths) - _MOST} more.</p>\n" if len(paths) > _MOST else ""
    listed = (
        f'<ul class="paths">\n{items}</ul>\n{more}' if paths else "<p>You may read no collection without a token.</p>\n"
    )
    return (
        '<section class="right">\n<h2>REST</h2>\n'
        "<p>Resources as JSON, with filters, sorting, pages, <code>fields</code> through "
        f"relations, and changes as they happen.</p>\n{_command(command)}{listed}</section>\n"
    )


def _more(root: str, described: bool) -> str:
    return f'<section class="wide">\n<dl>\n{"".join(_entries(escape(root), described))}</dl>\n</section>\n'


def _entries(root: str, described: bool) -> Iterator[str]:
    if described:
        yield _entry("Description", f'<a href="{root}/openapi.json">OpenAPI document</a>, and GraphQL introspection')
    yield _entry(
        "Sign in",
        f'<a href="{root}{ACCOUNT}">Your account</a>. Clients sign in by OpenID Connect '
        f'(<a href="{root}{OPENID_METADATA}">metadata</a>), and send '
        "<code>Authorization: Bearer &lt;token&gt;</code> with each request",
    )
    if documentation := _documentation():
        yield _entry("Documentation", f'<a href="{escape(documentation)}" rel="noreferrer">Diptych</a>')
    yield _entry("Health", f'<a href="{root}/health/live">live</a>, <a href="{root}/health/ready">ready</a>')


def _entry(name: str, html: str) -> str:
    return f"<dt>{name}</dt>\n<dd>{html}</dd>\n"


def _command(command: str) -> str:
    return f"<pre><code>{escape(command)}</code></pre>\n"


def _quoted(text: str) -> str:
    """A text in quotation marks for a shell; none is left inside."""
    return "'" + text.replace("'", "") + "'"


def _path(resource: ResourceView) -> str:
    return quote(resource.resource.path)


@cache
def _documentation() -> str:
    """The address of the documentation, as the package has it; "" for one that is nobody's (RFC 2606)."""
    try:
        links = importlib.metadata.metadata("diptych").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    addresses = [link.partition(", ")[2] for link in links if link.startswith("Documentation, ")]
    return next((address for address in addresses if not (urlsplit(address).hostname or "").endswith(".example")), "")
