"""Moves all data of one database to another, of either store, while it is served. It may import what `migrate` may.

    check → prepare → copy → follow → verify → switch

The feed makes it simple. Its position is noted first; then tables are copied in chunks, each in a read of its own. A
row that changes meanwhile is in the feed, and is read again and put in the place of what was copied; this repeats
until little is left. So no snapshot is held open, and a run that was interrupted goes on where it stopped. For the
switch the writers of the source are held up, the rest is put, and the source refuses writes from then on.

Rows and changes travel in the form in which SQLite stores them: `postgres_values` converts.
"""
