"""The SQLite store, by apsw: readers in the loop and in threads, one writer. It may import what `db` may."""
