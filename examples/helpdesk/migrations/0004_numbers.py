"""Numbers."""

from diptych.migrate import Key, Migration, add_column, add_key, column, set_search

migration = Migration(
    after="0003_states",
    leads_to="sha256:a51d84eb62e9f2c6b8ce1dcdd0b77f85",
    expand=(
        # sqlite:   -- tickets is made anew with number = row_number() OVER (PARTITION BY "project_id" ORDER BY created_at, id), and its 11 columns are copied
        # sqlite:   -- stored changes follow
        # postgres: ALTER TABLE "tickets" ADD COLUMN "number" integer
        # postgres: -- rows get numbers in the order in which they were made, in batches of 1000
        # postgres: LOCK TABLE "tickets" IN SHARE ROW EXCLUSIVE MODE
        # postgres: -- the rest gets its numbers
        # postgres: -- a trigger gives numbers from now on
        # postgres: ALTER TABLE "tickets" DROP CONSTRAINT IF EXISTS "tickets_number_not_null"
        # postgres: ALTER TABLE "tickets" ADD CONSTRAINT "tickets_number_not_null" CHECK ("number" IS NOT NULL) NOT VALID
        # postgres: ALTER TABLE "tickets" VALIDATE CONSTRAINT "tickets_number_not_null"
        # postgres: ALTER TABLE "tickets" ALTER COLUMN "number" SET NOT NULL
        # postgres: ALTER TABLE "tickets" DROP CONSTRAINT "tickets_number_not_null"
        # postgres: -- stored changes follow
        add_column("tickets", "number", column("Int", generated="counter:project_id")),
        # sqlite:   CREATE UNIQUE INDEX "projects_organisation_id_name_key" ON "projects" ("organisation_id", "name")
        # postgres: CREATE UNIQUE INDEX CONCURRENTLY "projects_organisation_id_name_key" ON "projects" ("organisation_id", "name")
        add_key("projects", Key(("organisation_id", "name"), unique=True)),
        # sqlite:   CREATE INDEX "tickets_project_id_state" ON "tickets" ("project_id", "state", id)
        # postgres: CREATE INDEX CONCURRENTLY "tickets_project_id_state" ON "tickets" ("project_id", "state", id)
        add_key("tickets", Key(("project_id", "state"))),
        # sqlite:   CREATE UNIQUE INDEX "tickets_project_id_number_key" ON "tickets" ("project_id", "number")
        # postgres: CREATE UNIQUE INDEX CONCURRENTLY "tickets_project_id_number_key" ON "tickets" ("project_id", "number")
        add_key("tickets", Key(("project_id", "number"), unique=True)),
        # sqlite:   CREATE TABLE diptych_search_tickets_505b5bd6_rows (n INTEGER PRIMARY KEY, id NOT NULL UNIQUE, a TEXT, b TEXT)
        # sqlite:   CREATE VIRTUAL TABLE diptych_search_tickets_505b5bd6 USING fts5(a, b, content='diptych_search_tickets_505b5bd6_rows', content_rowid='n', columnsize=0, detail='column', tokenize='unicode61 remove_diacritics 2')
        # sqlite:   INSERT INTO diptych_search_tickets_505b5bd6_rows (id, a, b) SELECT id, CAST(substr("title", 1, 100000) AS TEXT), CAST(substr("body", 1, 100000) AS TEXT) FROM "tickets"
        # sqlite:   INSERT INTO diptych_search_tickets_505b5bd6 (diptych_search_tickets_505b5bd6) VALUES ('rebuild')
        # sqlite:   CREATE TRIGGER diptych_search_tickets_505b5bd6_in AFTER INSERT ON diptych_search_tickets_505b5bd6_rows BEGIN INSERT INTO diptych_search_tickets_505b5bd6 (rowid, a, b) VALUES (NEW.n, NEW.a, NEW.b); END
        # sqlite:   CREATE TRIGGER diptych_search_tickets_505b5bd6_out AFTER DELETE ON diptych_search_tickets_505b5bd6_rows BEGIN INSERT INTO diptych_search_tickets_505b5bd6 (diptych_search_tickets_505b5bd6, rowid, a, b) VALUES ('delete', OLD.n, OLD.a, OLD.b); END
        # sqlite:   CREATE TRIGGER diptych_search_tickets_505b5bd6_created AFTER INSERT ON "tickets" BEGIN DELETE FROM diptych_search_tickets_505b5bd6_rows WHERE id = NEW.id; INSERT INTO diptych_search_tickets_505b5bd6_rows (id, a, b) SELECT id, CAST(substr("title", 1, 100000) AS TEXT), CAST(substr("body", 1, 100000) AS TEXT) FROM "tickets" WHERE id = NEW.id; END
        # sqlite:   CREATE TRIGGER diptych_search_tickets_505b5bd6_changed AFTER UPDATE OF id, "title", "body" ON "tickets" WHEN OLD.id IS NOT NEW.id OR OLD."title" IS NOT NEW."title" OR OLD."body" IS NOT NEW."body" BEGIN DELETE FROM diptych_search_tickets_505b5bd6_rows WHERE id IN (OLD.id, NEW.id); INSERT INTO diptych_search_tickets_505b5bd6_rows (id, a, b) SELECT id, CAST(substr("title", 1, 100000) AS TEXT), CAST(…
        # sqlite:   CREATE TRIGGER diptych_search_tickets_505b5bd6_deleted AFTER DELETE ON "tickets" BEGIN DELETE FROM diptych_search_tickets_505b5bd6_rows WHERE id = OLD.id; END
        # postgres: CREATE OR REPLACE FUNCTION diptych_words(mark text, it text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 5000 AS $body$ DECLARE found text; was text; becomes text; ends text; BEGIN IF it IS NULL THEN RETURN ''; END IF; IF octet_length(it) > length(it) THEN SELECT string_agg(c, '') INTO found FROM (SELECT DISTINCT c FROM string_to_table(regexp_replace(it, '[\u0001-\u007f]+', '',…
        # postgres: CREATE INDEX CONCURRENTLY diptych_search_tickets_505b5bd6 ON "tickets" USING gin ((diptych_words('a', left("title", 100000)) || diptych_words('b', left("body", 100000))))
        set_search("tickets", ("title", "body")),
    ),
)
