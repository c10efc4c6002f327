"""The HTML pages of the authorization server: sign-in, consent and errors, without scripts.

All values are escaped, nothing is loaded from other origins, and no page can be framed.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from diptych.api.descriptions import describe_scope
from diptych.api.reply import Header, Reply
from diptych.identity.scopes import IDENTITY_SCOPES
from diptych.look.sheet import style, style_source

_STYLE = style("""
body { min-height: 100vh; display: grid; place-items: center; padding: clamp(var(--s3), 4vw, var(--s5)); }
main { width: 100%; max-width: 25rem; background: var(--paper); border: 1px solid var(--line);
  border-radius: var(--radius); box-shadow: var(--shadow); padding: clamp(1.25rem, 6vw, var(--s6)); }
main::before { content: ""; display: block; width: var(--s7); height: var(--s1); border-radius: 2px;
  margin: 0 0 var(--s5); background: linear-gradient(90deg, var(--left) 0 48%, transparent 48% 52%, var(--right) 52%); }
h1 + p { color: var(--soft); }
h1 + p strong { color: var(--ink); }
p:last-child { margin: 0; }
form + p { margin-top: var(--s4); }
ul { margin: 0 0 var(--s5); padding: 0; list-style: none; border: 1px solid var(--line);
  border-radius: var(--radius-s); }
li { padding: var(--s2) var(--s3); font-size: 0.9375rem; }
li + li { border-top: 1px solid var(--line); }
.codes { display: grid; grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); background: var(--sunk);
  user-select: all; }
.codes li { border: 0; padding: var(--s1) var(--s3); }
.key { display: block; background: var(--sunk); border-radius: var(--radius-s); padding: var(--s2) var(--s3);
  user-select: all; }
h1 + .caution, h1 + .wrong { color: var(--ink); margin-top: var(--s4); }
.wrong { color: var(--ink); background: var(--bad-wash); border: 1px solid var(--bad); border-radius: var(--radius-s);
  padding: var(--s2) var(--s3); font-size: 0.9375rem; }
.caution { color: var(--ink); background: var(--warn-wash); border: 1px solid var(--warn);
  border-radius: var(--radius-s); padding: var(--s2) var(--s3); font-size: 0.9375rem; }
[role="status"] > strong { color: var(--good); }
label { display: block; font-weight: 600; font-size: 0.9375rem; margin: 0 0 var(--s1); }
input, select { width: 100%; min-height: 2.75rem; font: inherit; color: inherit; background: var(--paper);
  border: 1px solid var(--edge); border-radius: var(--radius-s); padding: var(--s2) var(--s3); margin: 0 0 var(--s4); }
input[aria-invalid] { border-color: var(--bad); }
input.check { width: auto; min-height: 0; margin: 0 var(--s2) 0 0; accent-color: var(--accent); }
input.code { font-family: var(--mono); font-size: var(--text-l); letter-spacing: 0.12em; }
.choices { display: flex; flex-wrap: wrap; gap: var(--s3); }
button { flex: 1 1 9rem; width: 100%; min-height: 2.75rem; font: inherit; font-weight: 600;
  padding: var(--s2) var(--s4); border-radius: var(--radius-s); cursor: pointer; border: 1px solid var(--edge);
  background: var(--paper); color: var(--ink); }
button:hover { background: var(--sunk); }
button.strong { background: var(--accent); border-color: var(--accent); color: var(--accent-ink); }
button.strong:hover { background: var(--left); border-color: var(--left); }
button.link { border: 0; min-height: 0; padding: var(--s1) 0; width: auto; color: var(--accent); background: none;
  text-decoration: underline; text-underline-offset: 0.15em; font-weight: 400; }
h2 { margin: var(--s6) 0 var(--s2); padding: var(--s5) 0 0; border-top: 1px solid var(--line); }
.qr { background: #fff; border: 1px solid var(--line); border-radius: var(--radius-s); padding: var(--s3);
  margin: 0 0 var(--s4); text-align: center; }
.qr svg { width: 100%; max-width: 13rem; height: auto; }
footer { margin-top: var(--s5); border-top: 1px solid var(--line); padding-top: var(--s4); color: var(--soft);
  font-size: 0.9375rem; }
footer p { margin: 0 0 var(--s2); }
footer strong { color: var(--ink); }
""")
Links = Sequence[tuple[str, str]]
"""The words of links, and where they lead."""
_STYLE_SOURCE = style_source(_STYLE)


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
    '<p class="caution">This app registered itself, and nobody has verified its name. Allow it only if you know the '
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
        f"default-src 'none'; style-src {_STYLE_SOURCE}; form-action {forms}; frame-ancestors 'none'; base-uri 'none'"
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
