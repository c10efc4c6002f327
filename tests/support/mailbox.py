"""A real SMTP server, and the mails that came.

with mailbox() as box:
    … a service with smtp=box.url …
    mail = box.wait()
    assert mail["To"] == "ann@example.org"
"""

from __future__ import annotations

import asyncio
import importlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

_LINK = re.compile(r"https?://\S+")


class Mailbox:
    """The mails of all recipients. `answer` is what the server says to a mail, by its number."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.tries = 0
        self.answer: Callable[[int], str] = lambda number: "250 OK"
        self.url = ""
        self._came = threading.Condition()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        with self._came:
            self.tries += 1
            answer = self.answer(self.tries)
            if answer.startswith("250"):
                self.mails.append(message_from_bytes(envelope.content, policy=default))
                self.recipients.append(list(envelope.rcpt_tos))
            self._came.notify_all()
        return answer

    def tried(self, count: int, seconds: float = 20) -> bool:
        """Wait until so many mails were tried to be delivered."""
        with self._came:
            return self._came.wait_for(lambda: self.tries >= count, seconds)


def text_of(mail: EmailMessage) -> str:
    """The plain text of a mail."""
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def link_of(mail: EmailMessage) -> str:
    """The link of a mail."""
    (link,) = _LINK.findall(text_of(mail))
    return str(link)


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """A server on a free port of this machine, in a thread."""
    box, ready, over = Mailbox(), threading.Event(), threading.Event()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        smtp = importlib.import_module("aiosmtpd.smtp").SMTP
        server = await loop.create_server(lambda: smtp(box, loop=loop), "127.0.0.1", 0)
        box.url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}?tls=no"
        ready.set()
        await loop.run_in_executor(None, over.wait)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    assert ready.wait(20)
    try:
        yield box
    finally:
        over.set()
        thread.join(20)
