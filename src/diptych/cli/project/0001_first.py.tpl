"""First."""

from diptych.migrate import Key, Migration, Table, column, create_table

migration = Migration(
    after="",
    leads_to="sha256:d37653abbdb8e4420d6e2cd86c37c9d5",
    expand=(
        # sqlite:   CREATE TABLE "people" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "name" TEXT NOT NULL, "email" TEXT NOT NULL, UNIQUE ("email") )
        # postgres: CREATE TABLE "people" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "name" text COLLATE "C" NOT NULL, "email" text COLLATE "C" NOT NULL, UNIQUE ("email") )
        create_table("people", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "name": column("String"),
            "email": column("String"),
        }, keys=(Key(("email",), unique=True, inline=True),))),
        # sqlite:   CREATE TABLE "tasks" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "owner_id" TEXT NOT NULL REFERENCES "people" (id) ON DELETE CASCADE, "title" TEXT NOT NULL, "done" INTEGER NOT NULL DEFAULT 0, "shared" INTEGER NOT …
        # sqlite:   CREATE INDEX "tasks_owner_id" ON "tasks" ("owner_id", id)
        # postgres: CREATE TABLE "tasks" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "owner_id" uuid NOT NULL, "title" text COLLATE "C" NOT NULL, "done" boolean NOT NULL DEFAULT false, "shared" boolean NOT NULL DEFAULT false )
        # postgres: CREATE INDEX "tasks_owner_id" ON "tasks" ("owner_id", id)
        # postgres: ALTER TABLE "tasks" ADD CONSTRAINT "tasks_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "people" (id) ON DELETE CASCADE
        create_table("tasks", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "owner_id": column("ID", target="people", on_delete="cascade"),
            "title": column("String"),
            "done": column("Boolean", default=False),
            "shared": column("Boolean", default=False),
        }, keys=(Key(("owner_id",)),))),
    ),
)
