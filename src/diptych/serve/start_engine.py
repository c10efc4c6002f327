"""Makes the engine of a service from its settings."""

from __future__ import annotations

from collections.abc import Iterable

from diptych.config import Config
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.fair.idempotency_quota import IdempotencyQuota
from diptych.fair.planning_budget import PlanningBudget
from diptych.identity.tokens import load_secret
from diptych.model.model import Model
from diptych.policy.limits import Check, Checks
from diptych.serve.rate_headers import rate_limiter
from diptych.serve.request_limits import request_limits


async def make_engine(
    kind: type[Engine], model: Model, store: Store, config: Config, checks: Iterable[Check]
) -> Engine:
    """An engine with the limits of the settings, on an open store and its replicas."""
    engine = kind(
        model,
        store,
        Checks(request_limits(config), tuple(checks)),
        await load_secret(store),
        config.plan_cache,
        PlanningBudget(config.planning_share),
        IdempotencyQuota(config.replay_size, config.replay_share),
    )
    if config.replicas:
        engine.reader = store.read_from(config.replicas, model)
    engine.rates = rate_limiter(model, config, store)
    return engine
