"""Functions of PostgreSQL that fold texts and divide them into words as SQLite's full-text search does.

    diptych_fold('Déjà Vu')            deja vu
    diptych_words('a', 'Déjà Vu')      'adeja' 'avu'

`translate()` takes longer the more characters it knows, and most texts have few that are not ASCII: so these are looked
up first, and the text is translated once, by those alone.
"""

from __future__ import annotations

import json

from diptych.compile.system.object import MARK, SystemObject
from diptych.model.folding import folds, word_ranges
from diptych.model.operators import MAX_SEARCHED

LONGEST_WORD = MAX_SEARCHED + 1
"""Characters of a word that are compared: a word of a search is shorter, so a longer one is none of those."""
MOST_SEARCHED = 200_000
"""Characters of the fields of a row that are searched: a tsvector takes 1 MiB, and a character at most four bytes."""


def folding() -> tuple[SystemObject, ...]:
    """The parts that every database has."""
    return (_function("diptych_fold(it text)", "text", _fold_body()),)


def words_function() -> SystemObject:
    """What the index of a search needs."""
    return _function("diptych_words(mark text, it text)", "tsvector", _words_body())


def _table() -> str:
    """What a character that is not ASCII is compared as, by character, as JSON."""
    return json.dumps({chr(code): to for code, to in folds().items() if code > 127}, ensure_ascii=False)


# in both bodies: `found` are the different characters that are not ASCII; left out are those that come last in `was`
_FOUND = r"""SELECT string_agg(c, '') INTO found FROM (SELECT DISTINCT c FROM
    string_to_table(regexp_replace(it, '[\u0001-\u007f]+', '', 'g') COLLATE "C", NULL) AS c) AS s;"""
_PAIRS = """SELECT string_agg(c, '' ORDER BY b = '', c), string_agg(b, '' ORDER BY b = '', c)
    INTO was, becomes FROM (SELECT c, '{}'::jsonb ->> c AS b FROM string_to_table(found, NULL) AS c) AS s
    WHERE b IS NOT NULL;"""


def _fold_body() -> str:
    return f"""
DECLARE
  found text;
  was text;
  becomes text;
BEGIN
  IF octet_length(it) = length(it) THEN
    RETURN lower(it COLLATE "C");
  END IF;
  {_FOUND}
  {_PAIRS.format(_table())}
  RETURN translate(lower(it COLLATE "C"), coalesce(was, ''), coalesce(becomes, ''));
END
"""


def _words_body() -> str:
    known = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in word_ranges() if low > 127)
    return f"""
DECLARE
  found text;
  was text;
  becomes text;
  ends text;
BEGIN
  IF it IS NULL THEN
    RETURN '';
  END IF;
  IF octet_length(it) > length(it) THEN
    {_FOUND}
    {_PAIRS.format(_table())}
    ends := translate(regexp_replace(found, '[{known}]+', '', 'g'), coalesce(was, ''), '');
    it := translate(it, ends || coalesce(was, ''), repeat(' ', length(ends)) || coalesce(becomes, ''));
  END IF;
  RETURN array_to_tsvector(ARRAY(SELECT DISTINCT mark || left(w, {LONGEST_WORD})
    FROM string_to_table(regexp_replace(lower(it COLLATE "C"), '[^a-z0-9\\u0080-\\U0010ffff]+', ' ', 'g'), ' ') AS w
    WHERE w <> ''));
END
"""


def _function(declared: str, result: str, body: str) -> SystemObject:
    """A function that PostgreSQL may use in an index: its result depends on nothing but its arguments."""
    name = declared.partition("(")[0]
    body += MARK
    how = "LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 5000" + (" STRICT" if result == "text" else "")
    create = f"CREATE OR REPLACE FUNCTION {declared} RETURNS {result} {how} AS $body${body}$body$"
    return SystemObject(f"{name}()", (create,), body)
