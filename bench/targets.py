"""What a ratio should be at least: the service in parts of the floor, and as a multiple of each peer.

A ratio is read "how good is the service, if the other is 1": by CPU it is the other's µs per request ÷ the service's,
by rate the service's requests/s ÷ the other's. The floor is compared by CPU alone.
"""

from __future__ import annotations

from bench.store import Kind

# case → at least, on SQLite and on PostgreSQL
FLOOR = {
    "Q1": (1.0, 1.0),
    "Q2": (0.95, 0.9),
    "Q3": (0.95, 0.9),
    "R1": (1.0, 1.0),
    "R2": (0.85, 0.85),
    "W1": (0.85, 0.85),
}
# peer → case → at least, on either
PEERS = {
    "mercurius": {"Q1": 1.3, "Q2": 5.0, "Q3": 4.5, "R1": 1.2, "R2": 1.5, "W1": 1.2},
    "postgraphile": {"Q1": 5.0, "Q2": 4.5, "Q3": 5.0, "W1": 2.5},
    "strawberry": {"Q1": 18.0, "Q2": 70.0, "Q3": 60.0, "R1": 14.0, "R2": 12.0, "W1": 15.0},
}
BY_RATE = ("mercurius",)
# Two workers ÷ one by rate, and p99 ÷ p50 at half load.
TWO_WORKERS, TAIL = 1.6, 3.0


def target(kind: Kind, case: str, other: str) -> float | None:
    """What is asked of service ÷ other."""
    short = case.partition("-")[0]
    if other == "floor":
        return FLOOR[short][0 if kind == "sqlite" else 1]
    return PEERS.get(other, {}).get(short)


def met(other: str, asked: float, by_cpu: float, by_rate: float) -> bool:
    """Whether a ratio is what is asked, as it is printed: to two digits."""
    return round(by_cpu, 2) >= asked and (other not in BY_RATE or round(by_rate, 2) >= asked)
