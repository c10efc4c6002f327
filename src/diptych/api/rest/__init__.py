"""REST: targets, query strings, PATCH bodies, preconditions and pages. It may import what `api` may."""
