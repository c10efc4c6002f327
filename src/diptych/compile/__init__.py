"""The compiler: Asks become SQL, one statement each, and a model becomes DDL.

The stage after `policy` in the pipeline (api → ask → policy → compile → db): it takes Asks that access rules have
narrowed, and makes Plans that `db` runs. It may import `ask`, `model` and `lru`. It opens no connection, and it never
puts a value of a request into SQL text (`fragment.py`).
"""
