# A service for a database that exists

Made by `diptych new --from`. `model.py` is the model: a class for each table and view, as they are. Diptych never changes these tables.

    diptych check        # every mistake of the model, or that it works
    diptych rules        # who may do what, as a table
    diptych dev          # serve it on http://127.0.0.1:8000, and reload when model.py changes
    python -m pytest     # the model fits a copy of the database, and who may read it (needs pytest)

The role `admin` may read, and nobody may write. `diptych dev` prints the token of an admin:

    ADMIN=…
    curl -s http://127.0.0.1:8000/openapi.json -H "authorization: Bearer $ADMIN"

## Then

- Give each class its rules, in place of `access = (grant("read", to=admin),)`, and change `test_model.py` with them.
- Rename classes and attributes as you like: the names of the database are in `table`, `key` and `Column`.
- Comments in `model.py` say what was left out, and why.
- A class without `managed=False` is a table of your own beside them. `diptych migrate make` writes its first migration;
  the tables that exist are no part of migrations.
- When the owner of the database changes a table, `diptych check --database …` names what no longer fits.

The address of the database is in `diptych.toml`, without a password: set `DIPTYCH_DATABASE` where one is needed.
`Containerfile` makes an image that serves it.
