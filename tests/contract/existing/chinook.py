"""A model of the tables of Chinook, with rules that were written by hand."""

from __future__ import annotations

from typing import Annotated

from diptych import Column, Model, OnDelete, Resource, Role, Unique, Viewer, allow, grant, inverse, through

admin = Role("admin")
WRITES = (grant("read"), grant("create", "update", "delete", to=admin))


class Artist(Resource, table="Artist", key="ArtistId", ids="integer", managed=False):
    """Who plays."""

    name: Annotated[str | None, Column("Name")] = None
    albums: list[Album] = inverse("artist")

    access = WRITES


class Album(Resource, table="Album", key="AlbumId", ids="integer", managed=False):
    """What is played."""

    title: Annotated[str, Column("Title")]
    artist: Annotated[Artist, Column("ArtistId"), OnDelete("cascade")]
    tracks: list[Track] = inverse("album")

    access = (grant("read", "create", "update", "delete", to=admin),)

    @allow("read")
    def early(self, viewer: Viewer) -> bool:
        return self.title < "a"


class Genre(Resource, table="Genre", key="GenreId", ids="integer", managed=False):
    """A kind of music."""

    name: Annotated[str | None, Column("Name"), Unique()] = None

    access = WRITES


class Track(Resource, table="Track", key="TrackId", ids="integer", managed=False):
    """A part of an album."""

    name: Annotated[str, Column("Name")]
    album: Annotated[Album | None, Column("AlbumId"), OnDelete("set null")] = None
    media_type_id: Annotated[int, Column("MediaTypeId")]
    genre: Annotated[Genre | None, Column("GenreId")] = None
    milliseconds: Annotated[int, Column("Milliseconds")]
    unit_price: Annotated[float, Column("UnitPrice")]
    playlists: list[Playlist] = through("PlaylistTrack", "track", "playlist")

    access = WRITES


class Playlist(Resource, table="Playlist", key="PlaylistId", ids="integer", managed=False):
    """A list of tracks."""

    name: Annotated[str | None, Column("Name")] = None
    tracks: list[Track] = through("PlaylistTrack", "playlist", "track")

    access = WRITES


class PlaylistTrack(Resource, table="PlaylistTrack", key=("PlaylistId", "TrackId"), managed=False):
    """A track in a list."""

    playlist: Annotated[Playlist, Column("PlaylistId"), OnDelete("cascade")]
    track: Annotated[Track, Column("TrackId"), OnDelete("cascade")]

    access = (grant("read"), grant("create", "delete", to=admin))


class AlbumLength(Resource, view="AlbumLength", key="AlbumId", ids="integer"):
    """How many tracks an album has."""

    title: Annotated[str | None, Column("Title")] = None
    tracks: Annotated[int | None, Column("Tracks")] = None

    access = (grant("read"),)


class Note(Resource):
    """A table of Diptych's own beside them."""

    text: str
    album: Album | None

    access = WRITES


MODEL = Model(Artist, Album, Genre, Track, Playlist, PlaylistTrack, AlbumLength, Note)
