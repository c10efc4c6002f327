"""Changes as they are committed, to whoever follows them: `tail` follows the feed, `group` evaluates once for all who
are told the same, `live` lets them in, and `watchman` ends those whose token has ended."""
