"""A store for each tenant: one process serves many databases, and every request reaches that of its tenant alone.

    directory.py    which tenants there are, and the database of each: the cells file
    pool.py         the services that are open: on demand, at most so many, the least recently used one closed first
    app.py          the application: the tenant of a request, then its service

A cell is a whole service of one tenant, with a database, a feed, accounts, keys, caches and rates of its own. Cells
share the model, the listener and its limits, and no data.
"""
