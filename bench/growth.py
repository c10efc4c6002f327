"""Growth curves."""


def measure_growth() -> None:
    """All curves."""
