"""Stores: they make the tables, run plans and write scripts, keep the feed, and store records of the service.

The last stage of the pipeline (api → ask → policy → compile → db): `engine` hands it compiled Plans. It may import
`fair`, `lru`, `config`, `model`, `ask.cursor`, and of `compile` what describes plans and tables, but not the compilers.
All code that talks to a driver is in `sqlite/` and `postgres/`; `store.py` is the interface that both implement.
"""
