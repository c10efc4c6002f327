"""The API of a model as files under version control, and what a change of it would break.

Both documents of every role are written once (`lock`), and compared with what the model would serve now (`check`).
GraphQL is compared by graphql-core, which knows the rules; REST by `openapi_diff`.
"""
