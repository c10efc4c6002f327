"""The HTML pages of the authorization server: sign-in, consent and errors, without scripts.

All values are escaped, nothing is loaded from other origins, and no page can be framed.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from diptych.api.descriptions import describe_scope
from diptych.api.reply import Header, Reply
from diptych.identity.scopes import IDENTITY_SCOPES

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #57606a; --paper: #fff; --edge: #d0d7de; --back: #f3f5f7;
  --strong: #0b5cad; --on-strong: #fff; --wrong: #a40e26; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9da7b1; --paper: #161b22; --edge: #3d444d;
  --back: #0d1117; --strong: #4493f8; --on-strong: #05101f; --wrong: #ff8182; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: clamp(0.75rem, 4vw, 1.5rem);
  background: var(--back); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { width: 100%; max-width: 25rem; background: var(--paper); border: 1px solid var(--edge); border-radius: 0.75rem;
  padding: clamp(1.25rem, 6vw, 2rem); }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 0.5rem; }
p { margin: 0 0 1.25rem; }
p:last-child { margin: 0; }
ul { margin: 0 0 1.5rem; padding-left: 1.25rem; }
li { margin: 0.25rem 0; }
.wrong { color: var(--wrong); border-left: 0.25rem solid; padding-left: 0.75rem; }
label { display: block; font-weight: 600; margin: 0 0 0.25rem; }
input { width: 100%; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft);
  border-radius: 0.4rem; padding: 0.55rem 0.7rem; margin: 0 0 1.25rem; }
input[aria-invalid] { border-color: var(--wrong); }
.choices { display: flex; flex-wrap: wrap; gap: 0.75rem; }
button { flex: 1 1 9rem; width: 100%; font: inherit; font-weight: 600; padding: 0.6rem 1rem; border-radius: 0.4rem;
  cursor: pointer; border: 1px solid var(--soft); background: var(--paper); color: var(--ink); }
button.strong { background: var(--strong); border-color: var(--strong); color: var(--on-strong); }
button.link { border: 0; padding: 0.25rem 0; width: auto; color: var(--strong); background: none;
  text-decoration: underline; font-weight: 400; }
h2 { font-size: 1.05rem; margin: 1.75rem 0 0.5rem; }
select { width: 100%; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft);
  border-radius: 0.4rem; padding: 0.55rem 0.7rem; margin: 0 0 1.25rem; }
input.check { width: auto; margin-right: 0.5rem; }
.qr { background: #fff; border-radius: 0.4rem; padding: 0.75rem; margin: 0 0 1.25rem; text-align: center; }
.qr svg { width: 100%; max-width: 14rem; height: auto; }
footer { margin-top: 1.75rem; border-top: 1px solid var(--edge); padding-top: 1.25rem; color: var(--soft);
  font-size: 0.9rem; }
footer p { margin: 0 0 0.5rem; }
a { color: var(--strong); }
:focus-visible { outline: 0.2rem solid var(--strong); outline-offset: 0.15rem; }
"""
Links = Sequence[tuple[str, str]]
"""The words of links, and where they lead."""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def sign_in(
    client: str, email: str, hidden: dict[str, str], wrong: str, links: Links = (), action: str = "login"
) -> str:
    """The sign-in page. `links` lead to the pages for those who cannot sign in yet."""
    alert = f'<p class="wrong" id="wrong" role="alert">{escape(wrong)}</p>\n' if wrong else ""
    described = ' aria-describedby="wrong" aria-invalid="true"' if wrong else ""
    first, second = ("", " autofocus") if email else (" autofocus", "")
    return whole_page(
        "Not signed in yet" if wrong else "Sign in",
        f"""<h1>Sign in</h1>
<p>to go on to <strong>{escape(client)}</strong></p>
{alert}<form method="post" action="{action}">
{hidden_inputs(hidden)}<label for="email">E-mail</label>
<input id="email" name="email" type="email" autocomplete="username" required value="{escape(email)}"{described}{first}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required{described}{second}>
<button class="strong" type="submit">Sign in</button>
</form>{_footer(links)}""",
    )


def _footer(links: Links) -> str:
    items = "".join(f'<p><a href="{escape(address)}">{escape(words)}</a></p>\n' for words, address in links)
    return f"\n<footer>\n{items}</footer>" if items else ""


_REGISTERED = (
    '<p class="wrong">This app registered itself, and nobody has verified its name. Allow it only if you know the '
    "address that you will go on to.</p>\n"
)


def consent(
    client: str, redirect: str, scopes: Sequence[str], email: str, hidden: dict[str, str], *, registered: bool = False
) -> str:
    """The consent page, on which a user allows or denies a client; one that registered itself is marked."""
    items = "".join(f"<li>{escape(describe_scope(scope))}</li>\n" for scope in scopes)
    asks = f"Allow {client} to act for you?"
    if all(scope in IDENTITY_SCOPES for scope in scopes):
        asks = f"Sign in to {client} with this account?"
    return whole_page(
        f"Allow {client}?",
        f"""<h1>{escape(asks)}</h1>
{_REGISTERED if registered else ""}<p>It will be able to</p>
<ul>
{items}</ul>
<form method="post" action="authorize">
{hidden_inputs(hidden)}<div class="choices">
<button type="submit" name="decision" value="deny">Do not allow</button>
<button class="strong" type="submit" name="decision" value="allow">Allow</button>
</div>
</form>
<footer>
<p>You will go on to <strong>{escape(_destination(redirect))}</strong>.</p>
<form method="post" action="logout">
{hidden_inputs(hidden)}Signed in as <strong>{escape(email)}</strong>.
<button class="link" type="submit">Use another account</button>
</form>
</footer>""",
    )


def sign_out(email: str, hidden: dict[str, str]) -> str:
    """The page on which a user signs out, since an app wants it."""
    return whole_page(
        "Sign out?",
        f"""<h1>Sign out?</h1>
<p>You are signed in as <strong>{escape(email)}</strong>.</p>
<form method="post" action="end_session">
{hidden_inputs(hidden)}<button class="strong" type="submit" name="confirm" value="yes">Sign out</button>
</form>""",
    )


def signed_out() -> str:
    """The page after a sign-out."""
    return whole_page("Signed out", "<h1>Signed out</h1>\n<p>You are signed out. You can close this page.</p>")


def failure(message: str) -> str:
    """The error page, for errors that cannot be sent to the client."""
    return whole_page("This did not work", f'<h1>This did not work</h1>\n<p role="alert">{escape(message)}</p>')


def page_reply(status: int, html: str, redirect: str = "", more: Sequence[Header] = ()) -> Reply:
    """A page with its security headers. `redirect` is the redirect URI of the client.

    Browsers check `form-action` for every redirect after a form, and a client may redirect on from its own address: so
    all addresses of the same scheme are allowed. There is no `Cross-Origin-Opener-Policy`, since clients that open the
    page in a pop-up wait there for the result.
    """
    forms = "'self'" + (f" {urlsplit(redirect).scheme}:" if redirect else "")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {forms}; frame-ancestors 'none'; "
        "base-uri 'none'"
    )
    head: tuple[Header, ...] = (
        (b"content-type", b"text/html; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", policy.encode()),
        (b"x-frame-options", b"DENY"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
    )
    return Reply(status, (*head, *more), html.encode())


def whole_page(title: str, body: str) -> str:
    """A page with its style."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n"
        "</html>\n"
    )


def hidden_inputs(values: dict[str, str]) -> str:
    """The hidden fields of a form."""
    return "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">\n' for name, value in values.items()
    )


def _destination(uri: str) -> str:
    parts = urlsplit(uri)
    return parts.netloc or f"the app at {parts.scheme}:"
