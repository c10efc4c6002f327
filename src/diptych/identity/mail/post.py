"""How a service makes and sends mails, from its settings."""

from __future__ import annotations

import logging
from email.headerregistry import Address

from msgspec import Struct

from diptych.config import Config
from diptych.errors import StartError
from diptych.identity.mail.message import sender_of
from diptych.identity.mail.outbox import Outbox
from diptych.identity.mail.templates import Templates
from diptych.identity.mail.transport import transport_of

log = logging.getLogger("diptych")
_NOBODY = "no-reply@localhost"
"""The sender of mails that are only written into a folder."""


class Mailer(Struct, frozen=True):
    """The queue, the texts and the sender of mails, and the name of the service in them."""

    outbox: Outbox
    templates: Templates
    sender: Address
    service: str


def post_of(config: Config, service: str) -> Mailer | None:
    """How to send mails; None if these settings do not say. A StartError if they say too little.

    Links are made of `base_url` alone. A service without one that sends mails would have to believe the Host header of
    the one who asks for a link.
    """
    transport = transport_of(config, log.info)
    if transport is None:
        return None
    if config.smtp and not config.base_url:
        raise StartError("The setting smtp needs base_url: the links of mails are made of it.")
    if config.smtp and not config.mail_from:
        raise StartError("The setting smtp needs mail_from: the sender of mails.")
    sender = sender_of(config.mail_from or _NOBODY)
    return Mailer(Outbox(transport), Templates(config.mail_templates), sender, service)
