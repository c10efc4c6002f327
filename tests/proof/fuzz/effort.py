"""How much is fuzzed, and from which seed.

    FUZZ=50 SEED=7 make fuzz

`FUZZ` says how much: 53 sends 100,000 requests. `SEED` is what everything is drawn from. An ordinary run draws the
same every time; a long one draws anew, and prints what it drew from.
"""

from __future__ import annotations

import os
import secrets

FUZZ = int(os.environ.get("FUZZ", "1"))
SEED = int(os.environ.get("SEED") or (0 if FUZZ == 1 else secrets.randbelow(2**32)))
UNMETERED = "--planning-share=0"
"""For a service that is fuzzed: all requests come from one caller, and nearly all of them are new."""
