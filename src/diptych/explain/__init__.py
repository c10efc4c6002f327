"""Explains a request: its Asks, price and statements, and which rule decides about which row and field.

    request + View → Asks → the rules about them → evaluated on rows → lines of text

Runs beside the pipeline: imports engine, api, policy, compile, db, ask and model; serve and cli import it.
"""
