"""The default model and its sample rows: a model file like any other.

Imports the public names of diptych, db and model; cli imports it.
"""
