"""Streams to clients: server-sent events and GraphQL over WebSocket, with their send queues and transports.

It is the part of `serve` between `live`, which produces changes, and `serve/http`, which writes bytes. It may import
what `serve` may import: `live` calls it through the `Sink` protocol, and nothing here reads the database.
"""
