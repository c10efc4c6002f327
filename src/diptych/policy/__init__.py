"""Authorization, validation and limits: between an Ask and SQL, everything that may refuse a request.

`access` and `guards` add the rules of the viewer to an Ask, `values` validates the values of its slots, `cost` and
`limits` bound its size, `cache_age` says for how long its answer may be cached. Imports `ask`, `model` and `lru`.
"""
