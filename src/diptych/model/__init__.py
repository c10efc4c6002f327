"""All that a model file may use, and the Model that comes of it."""
