"""The model: what a model file declares, and the definitions that every later stage reads.

`declare` is what model files import, `read` turns their classes into definitions (`defs`), `rules` traces their rules
into expressions, `view` folds these for a role, `describe` prints them. First in the pipeline: imports `errors`
and `lru` only.
"""
