"""Live changes: subscriptions and the change log, between `engine`, which evaluates changes, and `serve`.

`tail` follows the end of the feed, `topics` finds the groups that a change may concern, `evaluations` schedules them
fairly, `group` evaluates once for all subscribers with the same watch, `service` ties them together. `token_watch` ends
streams whose token is no longer valid; `retention` trims the feed. It may import `engine`, `db`, `identity`, `ask`,
`model`, `config` and `fair`.
"""
