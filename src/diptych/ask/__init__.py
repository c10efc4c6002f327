"""Requests as data: what a client asks for, independent of the API style and of the database.

`api` translates a request into Asks (`nodes`), `policy` adds the rules of the viewer, `compile` makes SQL of them.
Imports `model`, and nothing of the other stages.
"""
