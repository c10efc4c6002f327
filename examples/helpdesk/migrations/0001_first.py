"""First."""

from diptych.migrate import Key, Migration, Table, column, create_table

migration = Migration(
    after="",
    leads_to="sha256:e229c5d2c6302c137de21323797900c0",
    expand=(
        # sqlite:   CREATE TABLE "users" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "name" TEXT NOT NULL, "email" TEXT NOT NULL, UNIQUE ("email") )
        # postgres: CREATE TABLE "users" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "name" text COLLATE "C" NOT NULL, "email" text COLLATE "C" NOT NULL, UNIQUE ("email") )
        create_table("users", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "name": column("String"),
            "email": column("String"),
        }, keys=(Key(("email",), unique=True, inline=True),))),
        # sqlite:   CREATE TABLE "organisations" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "name" TEXT NOT NULL )
        # postgres: CREATE TABLE "organisations" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "name" text COLLATE "C" NOT NULL )
        create_table("organisations", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "name": column("String"),
        })),
        # sqlite:   CREATE TABLE "projects" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "organisation_id" TEXT NOT NULL REFERENCES "organisations" (id) ON DELETE CASCADE, "name" TEXT NOT NULL )
        # sqlite:   CREATE INDEX "projects_organisation_id" ON "projects" ("organisation_id", id)
        # postgres: CREATE TABLE "projects" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "organisation_id" uuid NOT NULL, "name" text COLLATE "C" NOT NULL )
        # postgres: CREATE INDEX "projects_organisation_id" ON "projects" ("organisation_id", id)
        # postgres: ALTER TABLE "projects" ADD CONSTRAINT "projects_organisation_id_fkey" FOREIGN KEY ("organisation_id") REFERENCES "organisations" (id) ON DELETE CASCADE
        create_table("projects", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "organisation_id": column("ID", target="organisations", on_delete="cascade"),
            "name": column("String"),
        }, keys=(Key(("organisation_id",)),))),
        # sqlite:   CREATE TABLE "tickets" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "project_id" TEXT NOT NULL REFERENCES "projects" (id) ON DELETE CASCADE, "reporter_id" TEXT NOT NULL REFERENCES "users" (id) ON DELETE RESTRICT, "…
        # sqlite:   CREATE INDEX "tickets_project_id" ON "tickets" ("project_id", id)
        # sqlite:   CREATE INDEX "tickets_reporter_id" ON "tickets" ("reporter_id", id)
        # postgres: CREATE TABLE "tickets" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "project_id" uuid NOT NULL, "reporter_id" uuid NOT NULL, "subject" text COLLATE "C" NOT NULL, "done" boolean NOT NULL DEFAULT false )
        # postgres: CREATE INDEX "tickets_project_id" ON "tickets" ("project_id", id)
        # postgres: CREATE INDEX "tickets_reporter_id" ON "tickets" ("reporter_id", id)
        # postgres: ALTER TABLE "tickets" ADD CONSTRAINT "tickets_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects" (id) ON DELETE CASCADE
        # postgres: ALTER TABLE "tickets" ADD CONSTRAINT "tickets_reporter_id_fkey" FOREIGN KEY ("reporter_id") REFERENCES "users" (id) ON DELETE RESTRICT
        create_table("tickets", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "project_id": column("ID", target="projects", on_delete="cascade"),
            "reporter_id": column("ID", target="users", on_delete="restrict"),
            "subject": column("String"),
            "done": column("Boolean", default=False),
        }, keys=(Key(("project_id",)), Key(("reporter_id",))))),
    ),
)
