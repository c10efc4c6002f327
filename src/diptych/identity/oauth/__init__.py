"""The OAuth 2 authorization server, on Authlib: `serve/endpoint/oauth` calls it. It may import what `identity` may."""
