"""The HTML pages of accounts: sign-up, new password, and the page of one's own account. Without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from diptych.model.declare.markers import MaxLen
from diptych.model.defs import FieldDef
from diptych.model.scalars import BOOLEAN, DATE
from diptych.serve.endpoint.oauth_pages import hidden_inputs, whole_page

Hidden = dict[str, str]


def ask_address(title: str, about: str, action: str, email: str, hidden: Hidden, wrong: str = "") -> str:
    """The page that asks for an e-mail address."""
    return whole_page(
        title,
        f"""<h1>{escape(title)}</h1>
<p>{escape(about)}</p>
{_alert(wrong)}<form method="post" action="{action}">
{hidden_inputs(hidden)}<label for="email">E-mail</label>
<input id="email" name="email" type="email" autocomplete="username" required autofocus
 value="{escape(email)}"{_described(wrong)}>
<button class="strong" type="submit">Send a link</button>
</form>""",
    )


def sent(email: str, about: str) -> str:
    """The page that says that a mail is on its way; it is the same whether there is an account or not."""
    return whole_page(
        "Look into your mailbox",
        f"""<h1>Look into your mailbox</h1>
<p role="status">{about.format(f"<strong>{escape(email)}</strong>")}</p>
<p>It may take a few minutes. No more than a few mails are sent to one address in an hour.</p>""",
    )


def set_password(title: str, email: str, fields: str, hidden: Hidden, wrong: str = "") -> str:
    """The page of a link that sets a password, with the fields of a new user if there are any."""
    return whole_page(
        title,
        f"""<h1>{escape(title)}</h1>
<p>for <strong>{escape(email)}</strong></p>
{_alert(wrong)}<form method="post" action="confirm">
{hidden_inputs(hidden)}{_username(email)}{fields}<label for="password">New password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required minlength="8"
 maxlength="256"{_described(wrong)}>
<button class="strong" type="submit">{escape(title)}</button>
</form>""",
    )


def confirm_page(title: str, email: str, hidden: Hidden) -> str:
    """The page of a link that needs nothing but a click."""
    return whole_page(
        title,
        f"""<h1>{escape(title)}</h1>
<p>Is <strong>{escape(email)}</strong> your address?</p>
<form method="post" action="confirm">
{hidden_inputs(hidden)}<button class="strong" type="submit">Yes, it is</button>
</form>""",
    )


def done(title: str, about: str, links: Sequence[tuple[str, str]] = ()) -> str:
    """The page after something was done."""
    items = "".join(f'<p><a href="{escape(address)}">{escape(words)}</a></p>\n' for words, address in links)
    return whole_page(title, f'<h1>{escape(title)}</h1>\n<p role="status">{escape(about)}</p>\n{items}')


def second_step(hidden: Hidden, wrong: str = "") -> str:
    """The page that asks for the second factor, between the password and what comes next."""
    return whole_page(
        "Not signed in yet" if wrong else "Second step",
        f"""<h1>Second step</h1>
<p>Enter the code that your authenticator app shows, or one of your recovery codes.</p>
{_alert(wrong)}<form method="post" action="second-step">
{hidden_inputs(hidden)}{_code_input(wrong)}<button class="strong" type="submit">Go on</button>
</form>""",
    )


def own_account(email: str, parts: Sequence[str], hidden: Hidden, notice: str = "", wrong: str = "") -> str:
    """The page of one's own account; `parts` are what can be done there."""
    status = f'<p role="status"><strong>{escape(notice)}</strong></p>\n' if notice else ""
    return whole_page(
        "Your account",
        f"""<h1>Your account</h1>
<p>Signed in as <strong>{escape(email)}</strong>.</p>
{_alert(wrong)}{status}{"".join(parts)}<footer>
{_action("sign-out", hidden, "Sign out", "link")}</footer>""",
    )


def verification(hidden: Hidden) -> str:
    """The part of an account whose address is not confirmed."""
    return f"<p>This address is not confirmed yet.</p>\n{_action('verify', hidden, 'Send a link to confirm it')}"


def another_address(email: str, hidden: Hidden) -> str:
    """The part that changes the address."""
    return f"""<h2>Another address</h2>
<form method="post" action="account">
{hidden_inputs({**hidden, "do": "change"})}<label for="email">New e-mail</label>
<input id="email" name="email" type="email" autocomplete="email" required>
{_password_input("change", email)}<button type="submit">Send a link to it</button>
</form>
"""


def second_factor(email: str, is_on: bool, hidden: Hidden) -> str:
    """The part that turns an authenticator app on or off."""
    title = "<h2>Authenticator app</h2>\n"
    if not is_on:
        return f"{title}<p>Protect your account by a code of your phone.</p>\n{_action('totp', hidden, 'Set it up')}"
    return f"""{title}<p>Signing in takes a code of your app.</p>
<form method="post" action="account">
{hidden_inputs({**hidden, "do": "totp-off"})}{_password_input("off", email)}{_code_input("")}\
<button type="submit">Turn it off</button>
</form>
"""


def enrol(email: str, qr: str, key: str, address: str, hidden: Hidden, wrong: str = "") -> str:
    """The page that shows the key of an authenticator app."""
    spaced = " ".join(key[start : start + 4] for start in range(0, len(key), 4))
    return whole_page(
        "Authenticator app",
        f"""<h1>Authenticator app</h1>
<p>Scan this with your app, or <a href="{escape(address)}">open it on this device</a>.</p>
<div class="qr">{qr}</div>
<p>Or type the key: <code class="key">{spaced}</code></p>
{_alert(wrong)}<form method="post" action="account">
{hidden_inputs({**hidden, "do": "totp-confirm"})}{_code_input(wrong)}{_password_input("on", email)}\
<button class="strong" type="submit">Turn it on</button>
</form>""",
    )


def recovery_codes(codes: Sequence[str]) -> str:
    """The page that shows recovery codes, once."""
    items = "".join(f"<li><code>{escape(code)}</code></li>\n" for code in codes)
    return whole_page(
        "Recovery codes",
        f"""<h1>Recovery codes</h1>
<p role="status">Signing in takes a code of your app from now on. Each of these codes stands in for it once. Keep them
where you find them without your phone; they are not shown again.</p>
<ul class="codes">
{items}</ul>
<p><a href="account">I have kept them</a></p>""",
    )


def _action(do: str, hidden: Hidden, words: str, look: str = "") -> str:
    kind = f' class="{look}"' if look else ""
    return (
        f'<form method="post" action="account">\n{hidden_inputs({**hidden, "do": do})}'
        f'<button{kind} type="submit">{escape(words)}</button>\n</form>\n'
    )


def _username(email: str) -> str:
    """The account of a password, for those who keep passwords."""
    return f'<input hidden type="text" name="username" autocomplete="username" value="{escape(email)}">\n'


def _password_input(where: str, email: str) -> str:
    return (
        f'{_username(email)}<label for="password-{where}">Your password</label>\n'
        f'<input id="password-{where}" name="password" type="password" autocomplete="current-password" required>\n'
    )


def _code_input(wrong: str) -> str:
    return (
        '<label for="code">Code</label>\n<input class="code" id="code" name="code" inputmode="text" '
        f'autocomplete="one-time-code" required maxlength="24"{_described(wrong)}>\n'
    )


def field_inputs(fields: Sequence[FieldDef], values: Mapping[str, str]) -> str:
    """The inputs for the fields of a new user."""
    return "".join(_input(field, values.get(f"field.{field.name}", "")) for field in fields)


def _input(field: FieldDef, value: str) -> str:
    name, words = escape(f"field.{field.name}"), escape(field.attr.replace("_", " ").strip().capitalize())
    label = f'<label for="{name}">{words}</label>\n'
    required = " required" if field.required else ""
    if field.scalar.choices:
        options = "".join(
            f'<option value="{escape(choice)}"{" selected" if choice == value else ""}>{escape(choice)}</option>\n'
            for choice in field.scalar.choices
        )
        empty = "" if field.required else '<option value=""></option>\n'
        return f'{label}<select id="{name}" name="{name}"{required}>\n{empty}{options}</select>\n'
    if field.scalar is BOOLEAN:
        checked = " checked" if value else ""
        return f'<label><input class="check" type="checkbox" name="{name}" value="true"{checked}> {words}</label>\n'
    kind = "date" if field.scalar is DATE else "text"
    most = next((f' maxlength="{limit.length}"' for limit in field.constraints if isinstance(limit, MaxLen)), "")
    auto = ' autocomplete="name"' if field.attr == "name" else ""
    return f'{label}<input id="{name}" name="{name}" type="{kind}"{auto}{required}{most} value="{escape(value)}">\n'


def _alert(wrong: str) -> str:
    return f'<p class="wrong" id="wrong" role="alert">{escape(wrong)}</p>\n' if wrong else ""


def _described(wrong: str) -> str:
    return ' aria-describedby="wrong" aria-invalid="true"' if wrong else ""
