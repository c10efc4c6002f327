"""Rules as expressions: the expression language, and the tracer that turns a Python rule into an expression."""
