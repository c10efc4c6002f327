"""The queue of mails: requests put them here, and a background task delivers them, one after the other.

A request never waits for a mail server, and takes as long for an address without an account (whose mail is None) as for
any other. The queue is bounded; a full one refuses. A delivery that fails for now is tried again after 5 seconds, 30, 2
minutes and 10; one that the server refuses for good is logged and dropped. The queue is in memory only: a link in a
table could be used by anyone who reads the table. What a restart loses, people ask for again.
"""

from __future__ import annotations

import asyncio
import logging
import smtplib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage

from diptych.errors import Code, Refusal
from diptych.fair.background import Background
from diptych.identity.mail.transport import MailTransport

log = logging.getLogger("diptych")
MOST = 1_000
"""Mails that may wait, those to be tried again included."""
DELAYS = (5.0, 30.0, 120.0, 600.0)
_BUSY = Refusal(Code.UNAVAILABLE, "Too many mails are waiting to be sent; try again later.")
Compose = Callable[[], EmailMessage | None]


class Outbox:
    """Mails on their way."""

    def __init__(self, transport: MailTransport, most: int = MOST, delays: tuple[float, ...] = DELAYS) -> None:
        self._transport = transport
        self._most = most
        self._delays = delays
        self._queue: asyncio.Queue[tuple[Compose, int]] = asyncio.Queue()
        self.waiting = 0
        self._sending = Background()
        self._is_sending = False
        self._thread = ThreadPoolExecutor(1, "diptych-mail")

    def check(self) -> None:
        """Refuse a request whose mail would find no room."""
        if self.waiting >= self._most:
            raise Refusal(_BUSY.code, _BUSY.message)

    def put(self, compose: Compose) -> None:
        """Add a mail, which is composed when its turn comes; one that is None is none."""
        self.check()
        self.waiting += 1
        self._queue.put_nowait((compose, 0))
        if not self._is_sending:
            self._is_sending = True
            self._sending.start(self._send_forever())

    async def stop(self) -> None:
        await self._sending.stop()
        self._is_sending = False
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _send_forever(self) -> None:
        while True:
            compose, tries = await self._queue.get()
            if not await self._delivered(compose, tries):
                asyncio.get_running_loop().call_later(self._delays[tries], self._queue.put_nowait, (compose, tries + 1))
            else:
                self.waiting -= 1

    async def _delivered(self, compose: Compose, tries: int) -> bool:
        """Deliver a mail. True if it is done with: delivered, or given up."""
        try:
            mail = compose()
            if mail is not None:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._transport.deliver, mail)
        except Exception as error:
            for_good = tries >= len(self._delays) or not _may_pass(error)
            log.log(logging.ERROR if for_good else logging.WARNING, "a mail cannot be sent: %s", _message(error))
            return for_good
        return True


def _may_pass(error: Exception) -> bool:
    """Is this a transient error, so that another attempt may succeed?"""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code < 500 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return error.smtp_code < 500
    return isinstance(error, OSError)


def _message(error: Exception) -> str:
    """What the log says: no address, and no password that a server may have repeated."""
    code = getattr(error, "smtp_code", "")
    return f"{type(error).__name__} {code}".strip()
