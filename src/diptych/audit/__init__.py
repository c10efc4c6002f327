"""The audit log: changes are appended from the feed with who made them, in a chain of hashes, and kept for longer.

    feed + acts → appender → entries of the log (chain) → export and verification (log)

Beside the pipeline: `live` runs the appender, and trims nothing of the feed before it was appended; versions of rows
are read after an append. `statements` has the SQL of both databases. It may import `db`, `compile.plan`, `ask.act`,
`model` and `fair`.
"""
