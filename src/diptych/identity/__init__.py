"""Authentication: accounts, API keys, access tokens, revocation, and the viewer of a request.

Beside the pipeline: `serve` authenticates a request here (`viewer`) before an endpoint sees it. It may import `db`,
`model`, `config`, `fair` and `lru`; `engine`, `live` and `serve` import it.
"""
