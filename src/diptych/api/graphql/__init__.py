"""GraphQL: schemas, documents, translation, persisted queries, and both protocols. It may import what `api` may."""
