"""Webhooks: changes sent to addresses by HTTP POST, signed as Standard Webhooks 1.0.

A webhook is a Watch with an address, and the feed is its outbox. `records` stores webhooks and deliveries that failed,
`manage` adds and removes them, `message` evaluates and signs, `address` and `post` send without reaching private
networks, `dispatcher` delivers one webhook, `service` leases them among nodes. It may import `live`, `engine`, `api`,
`db`, `identity`, `ask`, `model`, `config` and `fair`.
"""
