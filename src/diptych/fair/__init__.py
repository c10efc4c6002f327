"""Fairness between callers: queues, semaphores, token buckets, backoff, timers and background tasks.

Beside the pipeline: db, identity, engine, live and serve take from here what they share out. It may import `lru` and
`errors`, and knows nothing of requests, models or databases. All that is shared is shared out by caller (`caller.py`).
"""
