"""The OpenAPI document of a role. It may import what `api` may."""
