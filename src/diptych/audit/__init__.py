"""The audit log: changes are appended from the feed with who made them, in a chain of hashes, and kept for longer."""
