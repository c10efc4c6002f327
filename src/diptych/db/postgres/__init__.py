"""The PostgreSQL store, by asyncpg: connection pool, writer and feed. It may import what `db` may."""
