"""Mails of accounts: templates, messages, the SMTP client and the queue in front of it."""
