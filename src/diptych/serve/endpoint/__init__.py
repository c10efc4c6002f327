"""The endpoints: GraphQL, REST reads, writes, changes and calls, and the OAuth authorization server.

A `Request` and its caller come in from `serve.handler`, a `Reply` goes out. An endpoint understands a request by `api`,
runs it by `engine` or `live`, and keeps what it prepared. It may import what `serve` may import; not `compile`: SQL is
made below `engine`.
"""
