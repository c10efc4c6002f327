"""The server, the last stage of the pipeline: ASGI application, request handler, endpoints, streams and protocols.

    http → app → handler → endpoint → (api, engine, live) → Reply → http or stream

It may import everything but `compile`, `demo` and `cli`.
"""
