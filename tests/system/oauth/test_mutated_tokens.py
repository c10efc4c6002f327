"""Very many tokens that are nearly good: none is taken. `make prove` mutates 20,000."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from joserfc.jwk import ECKey
from joserfc.jws import JWSRegistry

from diptych.errors import Refusal
from tests.support.effort import scaled
from tests.system.oauth.forging import part, whole
from tests.system.oauth.stage import Stage

MUTANTS = scaled(20_000, 400)
_TEXT = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=.~ \t\n\0é😀"
_NUMBERS: tuple[Any, ...] = (0, -1, 1.5, 2**31, 2**53, 2**63, 2**64, 10**400, 1e308, True, "1", "", None, [], {})
_HEADERS: tuple[tuple[str, Any], ...] = (
    ("alg", "none"),
    ("alg", "HS256"),
    ("alg", "RS256"),
    ("alg", "ES384"),
    ("alg", "es256"),
    ("alg", None),
    ("alg", []),
    ("typ", "JWT"),
    ("typ", "AT+JWT"),
    ("typ", ""),
    ("typ", 1),
    ("kid", "../1"),
    ("kid", "2"),
    ("kid", 1),
    ("kid", None),
    ("kid", "' OR 1=1 --"),
    ("crit", ["exp"]),
    ("crit", []),
    ("jku", "https://evil.example/"),
    ("jwk", {"kty": "EC"}),
    ("x5u", "https://evil.example/"),
    ("x5c", ["MII"]),
    ("b64", False),
    ("zip", "DEF"),
    ("enc", "A128GCM"),
    ("more", 1),
)
_CLAIMS = ("exp", "iat", "nbf", "iss", "aud", "sub", "roles", "scope", "jti", "client_id", "grant", "account")


class Mutator:
    """Makes one token of another, by chance. Whatever comes out is not what we signed."""

    def __init__(self, token: str, other: str, seed: int) -> None:
        self.token = token
        self.drawn = {token, other}
        self.parts = token.split(".")
        self.others = other.split(".")
        self.chance = random.Random(seed)
        self.key = ECKey.generate_key("P-256", {"kid": json.loads(whole(self.parts[0]))["kid"]})
        self.ways: list[Callable[[], str]] = [
            self.bits,
            self.letters,
            self.cut,
            self.grown,
            self.swapped,
            self.head,
            self.claim,
            self.twice,
            self.spaced,
            self.cased,
            self.dotted,
            self.padded,
            self.resigned,
        ]

    def draw(self) -> str:
        """A mutant that was not drawn before."""
        while (found := self.chance.choice(self.ways)()) in self.drawn:
            continue
        self.drawn.add(found)
        return found

    def _with(self, place: int, text: str) -> str:
        return ".".join([*self.parts[:place], text, *self.parts[place + 1 :]])

    def bits(self) -> str:
        """A bit of what a part stands for."""
        place = self.chance.randrange(3)
        raw = bytearray(whole(self.parts[place]))
        for _ in range(self.chance.randint(1, 3)):
            raw[self.chance.randrange(len(raw))] ^= 1 << self.chance.randrange(8)
        return self._with(place, part(bytes(raw)))

    def letters(self) -> str:
        """A letter of the token: the last ones of a part have bits that stand for nothing."""
        ends = [index - 1 for index, letter in enumerate(self.token) if letter == "."] + [len(self.token) - 1]
        place = self.chance.choice([*ends, self.chance.randrange(len(self.token))])
        return self.token[:place] + self.chance.choice(_TEXT) + self.token[place + 1 :]

    def cut(self) -> str:
        start, end = sorted(self.chance.choices(range(len(self.token) + 1), k=2))
        return self.chance.choice(
            [self.token[:end], self.token[:start] + self.token[end:], self._with(2, self.parts[2][: end % 80])]
        )

    def grown(self) -> str:
        place = self.chance.randrange(1, len(self.token))
        return self.token[:place] + self.chance.choice(_TEXT) * self.chance.choice([1, 2, 9000]) + self.token[place:]

    def swapped(self) -> str:
        """Parts of another token of ours, in any order."""
        drawn = [self.chance.choice([self.parts, self.others])[place] for place in range(3)]
        if self.chance.random() < 0.3:
            self.chance.shuffle(drawn)
        return ".".join(drawn)

    def head(self) -> str:
        name, value = self.chance.choice(_HEADERS)
        return self._with(0, part({**json.loads(whole(self.parts[0])), name: value}))

    def claim(self) -> str:
        name = self.chance.choice(_CLAIMS)
        value = self.chance.choice([*_NUMBERS, 9_999_999_999, "admin", ["admin"], "read write", "diptych"])
        return self._with(1, part({**json.loads(whole(self.parts[1])), name: value}))

    def twice(self) -> str:
        """A name that stands twice: one for us, one for others."""
        place = self.chance.randrange(2)
        raw = whole(self.parts[place])
        name = self.chance.choice(list(json.loads(raw)))
        added = json.dumps({name: self.chance.choice(_NUMBERS)}).encode()
        return self._with(place, part(self.chance.choice([raw[:-1] + b"," + added[1:], added[:-1] + b"," + raw[1:]])))

    def spaced(self) -> str:
        """White space, in JSON and in the text."""
        place = self.chance.randrange(2)
        space = self.chance.choice([b" ", b"\n", b"\t", b"\xef\xbb\xbf", b"\0"])
        raw = whole(self.parts[place])
        inside = self._with(
            place, part(self.chance.choice([space + raw, raw + space, raw.replace(b":", b":" + space)]))
        )
        where = self.chance.randrange(1, len(self.token))
        return self.chance.choice([inside, self.token[:where] + space.decode("latin-1") + self.token[where:]])

    def cased(self) -> str:
        place = self.chance.randrange(3)
        return self._with(place, self.chance.choice([str.upper, str.lower, str.swapcase])(self.parts[place]))

    def dotted(self) -> str:
        place = self.chance.randrange(len(self.token) + 1)
        return self.token[:place] + "." * self.chance.randint(1, 3) + self.token[place:]

    def padded(self) -> str:
        place = self.chance.randrange(3)
        return self._with(place, self.parts[place] + self.chance.choice(["=", "==", "===", "A", "A=", "%3D", "_", "-"]))

    def resigned(self) -> str:
        """By a key of one's own, which has the name of ours."""
        text = self.chance.choice([lambda: self.token, self.head, self.claim])().rpartition(".")[0]
        drawn = self.chance.randbytes(self.chance.choice([0, 32, 63, 64, 65, 96]))
        own = JWSRegistry.algorithms["ES256"].sign(text.encode(), self.key)
        return f"{text}.{part(self.chance.choice([own, drawn]))}"


def test_no_mutated_token_is_taken(light: Stage) -> None:
    context = light.service.handler.context
    token, other = (light.tokens()["access_token"] for _ in range(2))
    mutator = Mutator(token, other, 20_000)
    taken: list[object] = []
    for _ in range(MUTANTS):
        mutant = mutator.draw()
        try:
            found = context.caller(b"Bearer " + mutant.encode()) or light.run(
                context.find(b"Bearer " + mutant.encode())
            )
            taken.append((mutant, found.viewer))
        except Refusal:
            continue
    assert taken == []
    assert len(mutator.drawn) == MUTANTS + 2
    assert light.holds(token) and light.holds(other)
