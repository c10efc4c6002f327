"""A database that exists → the text of a model file that serves it (`diptych inspect`).

`sqlite` and `postgres` read what is there, `names` and `types` translate it, and `model_file` writes it. Nothing in
the database is changed.
"""
