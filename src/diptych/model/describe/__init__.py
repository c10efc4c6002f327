"""Descriptions of a model for people: rules as text, the access matrix, and advice on missing indexes."""
