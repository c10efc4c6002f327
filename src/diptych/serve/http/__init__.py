"""The HTTP and WebSocket protocols under uvicorn: parsing rules, timeouts, connection limits, CORS, client addresses.

It is the outermost part of `serve`: bytes come in here, and the application gets a `Request`. It may import what
`serve` may import, and in fact uses `api` (replies and preconditions), `fair` and `lru`; nothing here knows the model.
"""
