"""The console: a page for people at `/console/`, and what it asks of the service besides the API.

Above the endpoints, beside them: it uses `explain`, `identity` and the engine, and nothing imports it but the handler,
on first use. Every endpoint of `/console/api/` is internal: it may change with each release.
"""
