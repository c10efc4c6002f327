# Tasks

A service made by `diptych new`. `tasks.py` is the model: what there is, and who may do what. Everything else follows from it.

    diptych check        # every mistake of the model, or that it works
    diptych rules        # who may do what, as a table
    diptych dev          # serve it on http://127.0.0.1:8000, and reload when tasks.py changes
    python -m pytest     # the rules, asked of a real service (needs pytest)

## A first hour

`diptych dev` prints the token of an admin. Keep it in a variable, and add a person:

    ADMIN=…
    curl -s http://127.0.0.1:8000/people -H "authorization: Bearer $ADMIN" -H 'content-type: application/json' \
      -d '{"name": "Ann", "email": "ann@example.org"}'

The answer has her `id`. A token with it acts as Ann:

    ANN=$(diptych token --user PERSON_ID)
    curl -s http://127.0.0.1:8000/tasks -H "authorization: Bearer $ANN" -H 'content-type: application/json' \
      -d '{"ownerId": "PERSON_ID", "title": "Write a model", "shared": true}'

The task is shared, so anyone may read it, in both styles:

    curl -s -g 'http://127.0.0.1:8000/tasks?fields=title,done'
    curl -s http://127.0.0.1:8000/graphql -H 'content-type: application/json' -d '{"query": "{ tasks { title done } }"}'

Ann finishes it, by the action in `tasks.py`:

    curl -s -X POST http://127.0.0.1:8000/tasks/TASK_ID/finish -H "authorization: Bearer $ANN"

People who sign in with a password, by OAuth 2.0, are added by `diptych account add EMAIL --user PERSON_ID`.

## Then

Change `tasks.py`: `diptych dev` makes new tables and columns by itself. When the change is ready, write it down for the databases that
exist, and read the file that is made:

    diptych migrate make     # migrations/0002_….py
    diptych migrate check    # the files lead to the model
    diptych migrate apply    # bring the database of diptych.toml there

`Containerfile` makes an image that migrates its database and then serves it. The type checkers know the model: `mypy --strict .`
and pyright in strict mode pass, and report a misspelt field. In production, `diptych serve` with a PostgreSQL in
`diptych.toml`: `database = "postgresql://…"`.
