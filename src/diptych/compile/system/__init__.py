"""DDL of what a database has besides the tables of the model: system tables, triggers, and the feed. It may import what
`compile` may.

The feed is a change log that triggers write, in the transaction of each change.

    position  mark        at           resource  row_id   old                       new
    41        1804289383  2026-01-31…  posts     0190…    {"id":"0190…","title":…}  {"id":"0190…","title":…}

`old` and `new` are the row before and after, as JSON by column; a row that was made has no `old`, one that was deleted
no `new`. A column that was added later is in no older change. A long value that an update left as it was is left out
(SQLite stores the number 1 instead, on PostgreSQL its column is in the list `=`): it is the `old` value of the
next change that has one, or that of the row as it is. `mark` is a random number: of two databases that came from one
copy and went on by themselves, the same position is that of different changes, and has different marks.

SQLite has one writer at a time, so the order in which changes are logged is the order of commits, and a position is the
number of its row. On PostgreSQL neither a sequence nor the number of a transaction is the order of commits. There a
change takes an `id` from a sequence while it holds the lock of its row, and `diptych_number()` gives positions later,
to all that is committed by then, in the order of ids. So the changes of a row, and of a transaction, are never
reversed, nothing is skipped, and what takes long to commit holds nothing up: it is numbered when it is there.
"""
