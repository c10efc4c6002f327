"""Runs Asks: the pipelines of reads (`read`), writes (`write`), calls (`call`) and subscriptions (`watch`).

    api → Ask → engine: policy → compile → db → bytes

Imports policy, compile, db, ask, model, identity, fair and api.ask_builder; live, explain and serve import it.
"""
