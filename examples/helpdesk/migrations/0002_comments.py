"""Comments."""

from diptych.migrate import Key, Migration, Table, add_column, column, create_table, rename_column

migration = Migration(
    after="0001_first",
    leads_to="sha256:2117768a7472c297660e0db9aeb1d082",
    expand=(
        # sqlite:   -- stored changes follow
        # sqlite:   ALTER TABLE "tickets" RENAME COLUMN "subject" TO "title"
        # sqlite:   -- stored changes follow
        # postgres: -- stored changes follow
        # postgres: -- our triggers are made anew
        # postgres: ALTER TABLE "tickets" RENAME COLUMN "subject" TO "title"
        # postgres: -- stored changes follow
        rename_column("tickets", "subject", "title"),
        # sqlite:   CREATE TABLE "comments" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "ticket_id" TEXT NOT NULL REFERENCES "tickets" (id) ON DELETE CASCADE, "author_id" TEXT NOT NULL REFERENCES "users" (id) ON DELETE RESTRICT, "bod…
        # sqlite:   CREATE INDEX "comments_ticket_id" ON "comments" ("ticket_id", id)
        # sqlite:   CREATE INDEX "comments_author_id" ON "comments" ("author_id", id)
        # postgres: CREATE TABLE "comments" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "ticket_id" uuid NOT NULL, "author_id" uuid NOT NULL, "body" text COLLATE "C" NOT NULL, "internal" boolean NOT NULL DEFAULT false )
        # postgres: CREATE INDEX "comments_ticket_id" ON "comments" ("ticket_id", id)
        # postgres: CREATE INDEX "comments_author_id" ON "comments" ("author_id", id)
        # postgres: ALTER TABLE "comments" ADD CONSTRAINT "comments_ticket_id_fkey" FOREIGN KEY ("ticket_id") REFERENCES "tickets" (id) ON DELETE CASCADE
        # postgres: ALTER TABLE "comments" ADD CONSTRAINT "comments_author_id_fkey" FOREIGN KEY ("author_id") REFERENCES "users" (id) ON DELETE RESTRICT
        create_table("comments", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "ticket_id": column("ID", target="tickets", on_delete="cascade"),
            "author_id": column("ID", target="users", on_delete="restrict"),
            "body": column("String"),
            "internal": column("Boolean", default=False),
        }, keys=(Key(("ticket_id",)), Key(("author_id",))))),
        # sqlite:   -- stored changes follow
        # sqlite:   ALTER TABLE "tickets" ADD COLUMN "body" TEXT NOT NULL DEFAULT ''
        # postgres: ALTER TABLE "tickets" ADD COLUMN "body" text COLLATE "C" NOT NULL DEFAULT ''
        # postgres: -- stored changes follow
        add_column("tickets", "body", column("String", default="")),
    ),
)
