"""Tokens of other issuers: discovery, their public keys, verification. It may import what `identity` may."""
