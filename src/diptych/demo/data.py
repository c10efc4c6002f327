"""Sample data for the default model: people who write about what they do, comment, and buy things.

Everything is drawn from a seed and counted from one moment, so every database is filled with the same rows:
40 users, 120 posts (three in four published), 300 comments, 80 orders. An id is a UUIDv7 whose time is the
`created_at` of its row. The texts are the tables below; among them are quotes, backslashes, emoji and several
scripts, as in real data.
"""

from __future__ import annotations

import functools
import random
import unicodedata
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from diptych.db.script import Step, one_step
from diptych.db.store import Store
from diptych.model.model import Model

SampleRow = tuple[Any, ...]
"""id, version, createdAt, updatedAt, and then what is the resource's own."""

_SEED = "diptych"
_BEGIN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
_COMMON = ("id", "version", "createdAt", "updatedAt")
_POSTS, _COMMENTS, _ORDERS = 120, 300, 80
_HOUR = 3_600

# A name, and the mailbox where the name does not give it.
_PEOPLE = """
Ada Okonkwo; Bram de Vries; Chiara Bianchi; Dmitri Volkov; Esi Mensah; Fatima Zahra El Idrissi; Göran Åkesson;
Hana Nováková; Inés Muñoz; Jamal Washington; Kofi Asante; Lena Weiß; Mateus Gonçalves; Niamh O'Sullivan;
Oğuz Yıldırım = oguz.yildirim; Priya Raghunathan; Quentin Lefèvre; Rosa María Peña; Siobhán Byrne;
Tomasz Wójcik; Ursula Achterberg; Valentina Rossi; Wanjiru Kamau; Ximena Castro; Yusuf Demir;
Zoë van den Berg;
山田 太郎 = taro.yamada; 김민지 = minji.kim; 王小明 = xiaoming.wang; Ольга Петрова = olga.petrova;
Γιώργος Παππάς = giorgos.pappas; نور الهدى = nour.alhuda; שירה לוי = shira.levi; अनन्या शर्मा = ananya.sharma;
Nguyễn Thị Hoa = hoa.nguyen; Łukasz Zieliński = lukasz.zielinski; Mele Tāufa; John "Jack" Doe = jack.doe;
Aroha Ngata; Søren Østergaard = soren.ostergaard
"""

# What people write about, in three lines each: the subject, something they saw, and what they make of it.
_SUBJECTS = """
sourdough in a cold kitchen
At 16 °C the dough needs fourteen hours, not six.
A jar in the airing cupboard does more than any gadget.
mending a wool coat
Moths had eaten eleven holes, most of them under the collar.
Darn from the lining side and steam it; nobody will ever see it.
keeping bees on a roof
Two hives on the fifth floor gave 31 kg of lime honey last June.
Tell your neighbours before the bees do.
learning to read Georgian
The alphabet has 33 letters and not a single capital.
Shop signs are the best textbook there is.
cycling through the Ardennes
The climb out of La Roche is short, and it does not forgive.
Take one gear more than you think you need.
an old Leica
The shutter had been slow since 1974, by a third of a stop.
A cheap meter and patience beat a new body.
growing tomatoes from seed
Of 24 seeds, 22 came up, and slugs took five.
Harden them off for ten days, even if it is warm.
moving a database without downtime
We copied 4 TB while the old one kept writing.
Rehearse the way back more often than the way there.
restoring a wooden dinghy
Two planks had gone soft around the centreboard.
Epoxy hides everything except poor preparation.
a year without a car
We spent 412 € on trains, and rented a van twice.
The hard part is the first month, not the last.
teaching teenagers to cook
Eight of them, one stove, and nobody cut a finger.
Let them season; that is when they start to taste.
winter swimming
The lake was at 3 °C, and ninety seconds felt long.
Get out while you still enjoy it.
printing with lead type
A case of Garamond weighs as much as a small dog.
Read your line upside down, and then read it again.
small SQL habits
A missing index had cost us two seconds on every login.
Name your constraints: the error message is for you.
walking the Via Francigena
Twenty-six days from Lausanne to Rome, with one good pair of boots.
Carry less water and more blister plasters.
tuning a piano at home
The top octave had drifted eight cents flat.
Do the unisons first and trust your ears last.
a garden for hedgehogs
A hole of 13 cm in the fence was all it took.
Leave the leaves where they fall.
reading aloud to old people
On Tuesdays it is detective stories, and they guess the end first.
Speak slowly, and never skip the descriptions.
solar panels on a rented flat
Two panels on the balcony cover the fridge and the router.
Ask the landlord in writing and attach a drawing.
making miso
It stood in the cellar for eleven months under a beach stone.
Salt by weight, never by eye.
repairing bicycles for neighbours
Most punctures are a worn rim tape.
Keep a box of odd bolts: you will need the ugliest one.
a choir without a conductor
Fourteen of us breathe together, and mostly we start together.
Whoever sings lowest decides the tempo.
sign language in the office
Three of us learned it for one colleague; now nine sign in meetings.
It ends the habit of talking over each other.
insulating an attic
Thirty centimetres of wood fibre, and the heating bill fell by a third.
Seal the hatch first; everything else comes second.
translating poems
One line took a week and ended with the words of the first draft.
Keep the image, and let the rhyme go.
running a repair café
Of 61 toasters this year, we saved 48.
Label the screws, or regret it.
bread for forty
Twelve kilograms of flour and a borrowed oven.
Bake the day before, and refresh it for five minutes.
"""
_FRAMES = (
    ("Notes on {}", "I have been at it for two years now. {} {} More next month."),
    ("What I got wrong about {}", "I was sure that I knew better. {} It took me a while to see it. {}"),
    ("A beginner's guide to {}", "You need less than you think. {}\n\nIf you keep one thing, let it be this: {}"),
    ("Questions I am asked about {}", "The same three, every time. {} And the short answer to most: {}"),
)
_ODD_POSTS = (
    ("Hello, world! 👋", "My first post here. I mostly write about trains 🚂, and about the people on them 🙂."),
    ('"Quoted" titles, and why I like them', 'She said: "It\'s only a title." I said: "Then it won\'t hurt."'),
    (r"Paths on Windows: C:\Users\me is not C:\\Users\\me", r"A backslash \ is one character; \n in a text is two."),
    ("春の京都を歩く", "朝六時の哲学の道には、まだ誰もいませんでした。桜はあと三日で満開です。"),
    ("Почему я веду дневник на бумаге", "Бумага не светится и ни о чём не напоминает. Этого достаточно."),
    ("لماذا أكتب بالعربية", "لأن بعض الكلمات لا تعيش إلا في لغتها."),
    ("Ο καφές της γιαγιάς", "Χαμηλή φωτιά, και ποτέ δεύτερη βράση. Αυτό ήταν όλο το μυστικό."),
    ("김치를 처음 담가 봤어요", "배추 세 포기, 소금은 생각보다 많이. 다음에는 마늘을 조금 줄일 거예요."),
    (
        "L'été où j'ai réparé l'horloge de l'église",
        "Elle retardait d'une minute par jour depuis 1911 ; c'était la corde.",
    ),
    (
        "100 % of 0 is 0: on averages",
        "A mean of {3, 4, 50} is 19; nobody in that room is 19. Use <median>, please & thanks.",
    ),
    (
        "👩‍🚀 What my daughter wants to be",
        "This week: an astronaut 👩‍🚀, a baker 🥖, or a T. rex 🦖. She needn't choose.",
    ),
    ("Zwölf Boxkämpfer", "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Ein Satz, alle Buchstaben."),
)
_UNFINISHED = "\n\n(To be continued: not ready yet.)"
_REMINDERS = ("Note to myself: finish this.", "Find the photo!", "Ask Wanjiru to read it first.", "Too long?")
_OPENINGS = (
    "Thank you for this.",
    "I wish I had read this a year ago.",
    "Lovely piece 🙂",
    "Not sure I agree.",
    "This made my day.",
    "Well put.",
    "We had the same trouble.",
    "ありがとうございます。",
    "Спасибо!",
    "شكرا جزيلا!",
    "Genau so ist es.",
    "Très juste.",
    "My grandmother used to say the same.",
    "Came here to say exactly this.",
    "Bookmarked ⭐",
    '"Less than you think" is the best advice in here.',
    "¡Qué bonito!",
    "Hm.",
)
_FOLLOWS = (
    "I tried it on Sunday, and it worked at once.",
    "Could you say more about the second step?",
    "It's the first time that anyone has explained it to me properly.",
    "Where did you find the parts?",
    "The number should be 13, not 31, if I read the table right.",
    "Don't forget the weather, though.",
    "I'd add one thing: take your time.",
    "How long did it take you in all?",
    "I'll try it next weekend.",
    r"On my machine it's under C:\tools, in case anyone else is looking.",
    "My neighbour swears by vinegar.",
    "I'll send you a photo when mine is done 📷",
    "We do it the other way round, and it's fine too.",
    "Please write the next part soon!",
    "",
)
_STATES = (*["delivered"] * 8, *["shipped"] * 4, *["paid"] * 4, *["pending"] * 3, *["cancelled"] * 2)
_CURRENCIES = (*["EUR"] * 6, "USD", "USD", "GBP", "CHF")
_NOTES = (
    None,
    None,
    None,
    "Please ring twice.",
    "It's a present 🎁, so no invoice in the box, please.",
    "Leave it with no. 12.",
    'Write "for Hana" on the card.',
    "午前中にお願いします。",
    "No plastic, if you can.",
)
_INTERNAL_NOTES = (
    None,
    None,
    None,
    None,
    "Address checked by phone.",
    "Second delivery attempt.",
    "Asked for a discount; refused.",
    "Refund approved by O. Yıldırım.",
)


async def insert_sample(store: Store, model: Model) -> None:
    """Insert the sample data, unless there are users already."""
    if await store.write(lambda: one_step(Step("SELECT 1 FROM users LIMIT 1", ()))) is not None:
        return
    await store.insert(model.resources["User"], (*_COMMON, "name", "email"), users())
    await store.insert(model.resources["Post"], (*_COMMON, "authorId", "title", "body", "published"), posts())
    await store.insert(model.resources["Comment"], (*_COMMON, "postId", "authorId", "body"), comments())
    own = ("customerId", "status", "total", "currency", "note", "internalNote")
    await store.insert(model.resources["Order"], (*_COMMON, *own), orders())


@functools.cache
def users() -> tuple[SampleRow, ...]:
    """One user a day, more or less, from the beginning on."""
    draw = random.Random(f"{_SEED} users")
    people = [entry.strip().partition(" = ") for entry in _PEOPLE.split(";")]
    rows = []
    for number, (name, _, mailbox) in enumerate(people):
        after = draw.randrange(24 * _HOUR) if number else 0
        email = f"{mailbox or _mailbox(name)}@example.com"
        rows.append((*_common(draw, _BEGIN + timedelta(days=number, seconds=after)), name, email))
    return tuple(rows)


@functools.cache
def posts() -> tuple[SampleRow, ...]:
    """What the users write, once all of them are there."""
    draw = random.Random(f"{_SEED} posts")
    lines = _SUBJECTS.strip().splitlines()
    subjects = [lines[start : start + 3] for start in range(0, len(lines), 3)]
    texts = [*_ODD_POSTS, *(_text(subject, frame) for frame in _FRAMES for subject in subjects)]
    draw.shuffle(texts)
    rows = []
    for number, (title, body) in enumerate(texts[:_POSTS]):
        moment = _BEGIN + timedelta(days=45 + number, seconds=draw.randrange(20 * _HOUR))
        published = number % 4 != 3
        text = body if published else body + _UNFINISHED
        rows.append((*_common(draw, moment), draw.choice(users())[0], title, text, published))
    return tuple(rows)


@functools.cache
def comments() -> tuple[SampleRow, ...]:
    """What the users say within ten days of a post; on a draft only its author does, as a reminder."""
    draw = random.Random(f"{_SEED} comments")
    weights = [5 if post[-1] else 1 for post in posts()]
    drawn = []
    for post in draw.choices(posts(), weights, k=_COMMENTS):
        moment = datetime.fromisoformat(post[2]) + timedelta(seconds=60 + draw.randrange(240 * _HOUR))
        if post[-1]:
            author, body = draw.choice(users())[0], f"{draw.choice(_OPENINGS)} {draw.choice(_FOLLOWS)}"
        else:
            author, body = post[4], draw.choice(_REMINDERS)
        drawn.append((moment, post[0], author, body.strip()))
    return tuple((*_common(draw, moment), *own) for moment, *own in sorted(drawn))


@functools.cache
def orders() -> tuple[SampleRow, ...]:
    """What the users buy."""
    draw = random.Random(f"{_SEED} orders")
    rows = []
    for number in range(_ORDERS):
        moment = _BEGIN + timedelta(days=45 + 1.5 * number, seconds=draw.randrange(20 * _HOUR))
        total = Decimal(draw.randrange(390, 48_000)).scaleb(-2)
        bought = (draw.choice(_STATES), total, draw.choice(_CURRENCIES))
        notes = (draw.choice(_NOTES), draw.choice(_INTERNAL_NOTES))
        rows.append((*_common(draw, moment), draw.choice(users())[0], *bought, *notes))
    return tuple(rows)


def _text(subject: Sequence[str], frame: Sequence[str]) -> tuple[str, str]:
    topic, seen, learned = subject
    title, body = frame
    return title.format(topic), body.format(seen, learned)


def _mailbox(name: str) -> str:
    """`Inés Muñoz` → `ines.munoz`."""
    plain = unicodedata.normalize("NFKD", name.lower().replace("ß", "ss").replace("'", ""))
    return ".".join("".join(letter for letter in plain if letter.isascii()).split())


def _common(draw: random.Random, created: datetime) -> SampleRow:
    """The fields that every row has. A row of version 1 was never changed."""
    created += timedelta(microseconds=draw.randrange(1_000_000))
    version = draw.choice((1, 1, 1, 2, 3))
    updated = created + timedelta(seconds=draw.randrange(600, 72 * _HOUR) if version > 1 else 0)
    return _id(draw, created), version, _moment(created), _moment(updated)


def _id(draw: random.Random, created: datetime) -> str:
    """A UUIDv7: 48 bits of milliseconds, then chance, with the version and the variant in between."""
    milliseconds = (created - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    head = milliseconds << 80 | 0x7 << 76 | draw.getrandbits(12) << 64
    return str(uuid.UUID(int=head | 0b10 << 62 | draw.getrandbits(62)))


def _moment(of: datetime) -> str:
    return of.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


FIRST_USER_ID: str = users()[0][0]
"""The user as whom the sample login and the token of `diptych dev` act."""
