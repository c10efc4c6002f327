"""The API styles: translate requests of GraphQL and REST into Asks, and encode responses, schemas and documents.

The first stage of the pipeline (api → ask → policy → compile → db): `understand` takes a request and a View, and
returns Asks; `reply` makes responses. Independent of HTTP servers and databases. It may import `ask`, `model`, `lru`
and `nesting`.
"""
