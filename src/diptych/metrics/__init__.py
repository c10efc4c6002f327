"""Metrics: what is counted, its names and help, and its text for Prometheus.

    registry.gauge("diptych_streams", "Open streams of changes.", lambda: live.shares.taken)

Requests count in plain lists; a registry reads them when it is scraped, `processes` adds up several processes, and
`exposition` renders the text by prometheus_client.
"""
