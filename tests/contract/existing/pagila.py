"""A model of the tables of Pagila, with rules that were written by hand: enums, days, junction tables, a unique key."""

from __future__ import annotations

import enum
from datetime import date
from typing import Annotated

from diptych import (
    Column,
    Model,
    OnDelete,
    ReadBy,
    Resource,
    Role,
    Unique,
    Viewer,
    allow,
    grant,
    inverse,
    through,
    unique,
)

admin = Role("admin")
WRITES = grant("create", "update", "delete", to=admin)


class Rating(enum.Enum):
    """Who may see a film."""

    G = "G"
    PG = "PG"
    PG_13 = "PG_13"
    R = "R"


class Language(Resource, table="language", key="language_id", ids="integer", managed=False):
    """What is spoken."""

    name: str
    films: list[Film] = inverse("language")

    access = (grant("read"), WRITES)


class Category(Resource, table="category", key="category_id", ids="integer", managed=False):
    """A kind of films."""

    name: Annotated[str, Unique()]
    films: list[Film] = through("FilmCategory", "category", "film")

    access = (grant("read"), WRITES)


class Actor(Resource, table="actor", key="actor_id", ids="integer", managed=False):
    """Who plays."""

    first_name: str
    last_name: str
    films: list[Film] = through("FilmActor", "actor", "film")

    access = (grant("read"), WRITES)


class Film(Resource, table="film", key="film_id", ids="integer", managed=False):
    """What is rented. Only admins see all of them."""

    title: str
    description: str | None = None
    release_year: int | None = None
    language: Annotated[Language, Column("language_id")]
    original_language: Annotated[Language | None, Column("original_language_id")] = None
    rental_duration: int = 3
    rating: Annotated[Rating | None, Column("rating", type="mpaa_rating")] = Rating.G
    actors: list[Actor] = through("FilmActor", "film", "actor")
    categories: list[Category] = through("FilmCategory", "film", "category")
    inventories: list[Inventory] = inverse("film")

    access = (grant("read", to=admin), WRITES)

    @allow("read")
    def for_all(self, viewer: Viewer) -> bool:
        return self.rating != Rating.R


class FilmActor(Resource, table="film_actor", key=("film_id", "actor_id"), managed=False):
    """Who plays in what."""

    film: Annotated[Film, OnDelete("cascade")]
    actor: Annotated[Actor, OnDelete("cascade")]

    access = (grant("read"), WRITES)


class FilmCategory(Resource, table="film_category", key=("film_id", "category_id"), managed=False):
    """What a film is."""

    film: Annotated[Film, OnDelete("cascade")]
    category: Category

    access = (grant("read"), WRITES)


class Store(Resource, table="store", key="store_id", ids="integer", managed=False):
    """Where films are rented."""

    name: Annotated[str, Unique()]
    customers: list[Customer] = inverse("store")

    access = (grant("read"), WRITES)


class Customer(Resource, table="customer", key="customer_id", ids="integer", managed=False):
    """Who rents."""

    store: Store
    first_name: str
    email: Annotated[str | None, ReadBy(admin)] = None
    active: bool = True
    rentals: list[Rental] = inverse("customer")

    keys = (unique("store", "email"),)
    access = (grant("read", to=admin), WRITES)

    @allow("read")
    def is_active(self, viewer: Viewer) -> bool:
        return self.active


class Inventory(Resource, table="inventory", key="inventory_id", ids="integer", managed=False):
    """A copy of a film."""

    film: Film
    store: Store

    access = (grant("read"), WRITES)


class Rental(Resource, table="rental", key="rental_id", ids="integer", managed=False):
    """A copy that was rented. Those of active customers are seen by all."""

    inventory: Inventory
    customer: Customer
    rented: date
    returned: date | None = None

    access = (grant("read", to=admin), WRITES)

    @allow("read")
    def of_active(self, viewer: Viewer) -> bool:
        return self.customer.active


MODEL = Model(Language, Category, Actor, Film, FilmActor, FilmCategory, Store, Customer, Inventory, Rental)
