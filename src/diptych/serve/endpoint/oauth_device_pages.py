"""The HTML pages of the device flow: type the code, look at what asks, done."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from diptych.api.descriptions import describe_scope
from diptych.serve.endpoint.oauth_pages import hidden_inputs, whole_page


def type_code(email: str, hidden: dict[str, str], wrong: str) -> str:
    """The page on which a user types the code that a device shows."""
    alert = f'<p class="wrong" id="wrong" role="alert">{escape(wrong)}</p>\n' if wrong else ""
    described = ' aria-describedby="wrong" aria-invalid="true"' if wrong else ""
    return whole_page(
        "Not connected yet" if wrong else "Connect a device",
        f"""<h1>Connect a device</h1>
<p>Type the code that your device or program shows.</p>
{alert}<form method="post" action="device">
{hidden_inputs(hidden)}<label for="user_code">Code</label>
<input class="code" id="user_code" name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false"
 maxlength="20" required{described} autofocus>
<button class="strong" type="submit">Go on</button>
</form>
{_signed_in(email, hidden)}""",
    )


def device_consent_page(client: str, scopes: Sequence[str], email: str, hidden: dict[str, str]) -> str:
    """The page on which a user allows or denies the device whose code was typed."""
    items = "".join(f"<li>{escape(describe_scope(scope))}</li>\n" for scope in scopes)
    return whole_page(
        f"Connect {client}?",
        f"""<h1>Connect {escape(client)}?</h1>
<p class="caution">Go on only if you started this yourself, just now, on a device of your own.
If someone sent you the code, do not: it would let them act for you.</p>
<p>It will be able to</p>
<ul>
{items}</ul>
<form method="post" action="device">
{hidden_inputs(hidden)}<div class="choices">
<button type="submit" name="decision" value="deny" autofocus>Do not allow</button>
<button class="strong" type="submit" name="decision" value="allow">Allow</button>
</div>
</form>
{_signed_in(email, hidden)}""",
    )


def decided(client: str, allowed: bool) -> str:
    """The last page."""
    if not allowed:
        return whole_page("Not connected", f"<h1>Not connected</h1>\n<p>{escape(client)} was not allowed.</p>")
    return whole_page(
        "Connected", f"<h1>Connected</h1>\n<p>{escape(client)} can go on now. You can close this page.</p>"
    )


def _signed_in(email: str, hidden: dict[str, str]) -> str:
    again = {"request": hidden["request"], "token": hidden["token"]}
    return f"""<footer>
<form method="post" action="logout">
{hidden_inputs(again)}Signed in as <strong>{escape(email)}</strong>.
<button class="link" type="submit">Use another account</button>
</form>
</footer>"""
