"""An issuer that accepts connections and does not answer holds nobody up whose token has a known key."""

from __future__ import annotations

import asyncio
import threading

from tests.contract.identity.issuer import EC_256, KEYS, issuing
from tests.contract.identity.test_issuer_keys import NEW, Service


def test_who_has_a_known_key_waits_for_the_first_attempt_alone() -> None:
    with issuing() as issuer:
        issuer.publish(EC_256)
        service = Service(issuer, patience=0.2)
        assert service.takes(EC_256)
        gate = issuer.answers[KEYS].gate = threading.Event()
        assert service.after(700).takes(EC_256) and issuer.reads() == 2
        service.issuers._keys[issuer.issuer]._timeout = 30

        async def work() -> None:
            async def takes() -> bool:
                return await service.issuers.verify(issuer.token(EC_256)) is not None

            async with asyncio.timeout(5):
                assert [await takes() for _ in range(3)] == [True] * 3
            unknown = asyncio.create_task(service.issuers.verify(issuer.token(NEW)))
            while issuer.reads() < 3:
                await asyncio.sleep(0.01)
            assert not unknown.done(), "it needs the keys that are being fetched"
            issuer.publish(NEW)
            gate.set()
            await unknown

        service.after(1)
        asyncio.run(work())
        assert service.after(11).takes(NEW) and issuer.reads() <= 4
