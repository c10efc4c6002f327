"""Jobs: actions that run in the background, and functions that run by the clock.

A call stores a job in its transaction (`engine/background.py`); the queue is a table with leases (`db/job_queue.py`).
`service` takes jobs that are due and runs them, `run` runs one, `transaction` is what its function gets, `schedules`
makes jobs of ticks, `manage` lists, cancels and retries them for operators, `retention` deletes old ones,
`counts` counts for the metrics. It may import `engine`, `api`, `db`, `identity`, `ask`, `model`, `config` and `fair`.
"""
