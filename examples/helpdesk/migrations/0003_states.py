"""States."""

from diptych.migrate import Key, Migration, Table, add_column, add_key, column, create_table, drop_column

migration = Migration(
    after="0002_comments",
    leads_to="sha256:975463d2ef7ab63c05b1ecdb95683cf3",
    expand=(
        # sqlite:   CREATE TABLE "memberships" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "organisation_id" TEXT NOT NULL REFERENCES "organisations" (id) ON DELETE CASCADE, "user_id" TEXT NOT NULL REFERENCES "users" (id) ON DELETE C…
        # sqlite:   CREATE UNIQUE INDEX "memberships_organisation_id_user_id_key" ON "memberships" ("organisation_id", "user_id")
        # sqlite:   CREATE INDEX "memberships_organisation_id" ON "memberships" ("organisation_id", id)
        # sqlite:   CREATE INDEX "memberships_user_id" ON "memberships" ("user_id", id)
        # postgres: CREATE TABLE "memberships" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "organisation_id" uuid NOT NULL, "user_id" uuid NOT NULL, "level" text COLLATE "C" NOT NULL DEFAULT 'customer' )
        # postgres: CREATE UNIQUE INDEX "memberships_organisation_id_user_id_key" ON "memberships" ("organisation_id", "user_id")
        # postgres: CREATE INDEX "memberships_organisation_id" ON "memberships" ("organisation_id", id)
        # postgres: CREATE INDEX "memberships_user_id" ON "memberships" ("user_id", id)
        # postgres: ALTER TABLE "memberships" ADD CONSTRAINT "memberships_organisation_id_fkey" FOREIGN KEY ("organisation_id") REFERENCES "organisations" (id) ON DELETE CASCADE
        # postgres: ALTER TABLE "memberships" ADD CONSTRAINT "memberships_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users" (id) ON DELETE CASCADE
        create_table("memberships", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "organisation_id": column("ID", target="organisations", on_delete="cascade"),
            "user_id": column("ID", target="users", on_delete="cascade"),
            "level": column("Enum", values=("customer", "agent", "owner"), default="customer"),
        }, keys=(Key(("organisation_id",)), Key(("user_id",)), Key(("organisation_id", "user_id"), unique=True)))),
        # sqlite:   -- stored changes follow
        # sqlite:   -- tickets is made anew with state = CASE WHEN done THEN 'solved' ELSE 'open' END, and its 10 columns are copied
        # postgres: ALTER TABLE "tickets" ADD COLUMN "state" text COLLATE "C"
        # postgres: ALTER TABLE "tickets" ALTER COLUMN "state" SET DEFAULT 'open'
        # postgres: UPDATE "tickets" SET "state" = CASE WHEN done THEN 'solved' ELSE 'open' END WHERE "state" IS NULL -- in batches of 1000 rows
        # postgres: ALTER TABLE "tickets" DROP CONSTRAINT IF EXISTS "tickets_state_not_null"
        # postgres: ALTER TABLE "tickets" ADD CONSTRAINT "tickets_state_not_null" CHECK ("state" IS NOT NULL) NOT VALID
        # postgres: ALTER TABLE "tickets" VALIDATE CONSTRAINT "tickets_state_not_null"
        # postgres: ALTER TABLE "tickets" ALTER COLUMN "state" SET NOT NULL
        # postgres: ALTER TABLE "tickets" DROP CONSTRAINT "tickets_state_not_null"
        # postgres: -- stored changes follow
        add_column("tickets", "state", column("Enum", values=("open", "waiting", "solved", "closed"), default="open"), fill="CASE WHEN done THEN 'solved' ELSE 'open' END"),
        # sqlite:   ALTER TABLE "tickets" ADD COLUMN "assignee_id" TEXT REFERENCES "users" (id) ON DELETE SET NULL
        # postgres: ALTER TABLE "tickets" ADD COLUMN "assignee_id" uuid
        # postgres: ALTER TABLE "tickets" ADD CONSTRAINT "tickets_assignee_id_fkey" FOREIGN KEY ("assignee_id") REFERENCES "users" (id) ON DELETE SET NULL NOT VALID
        # postgres: ALTER TABLE "tickets" VALIDATE CONSTRAINT "tickets_assignee_id_fkey"
        add_column("tickets", "assignee_id", column("ID", nullable=True, target="users", on_delete="set null")),
        # sqlite:   CREATE INDEX "tickets_assignee_id" ON "tickets" ("assignee_id", id)
        # postgres: CREATE INDEX CONCURRENTLY "tickets_assignee_id" ON "tickets" ("assignee_id", id)
        add_key("tickets", Key(("assignee_id",))),
    ),
    contract=(
        # sqlite:   ALTER TABLE "tickets" DROP COLUMN "done"
        # postgres: -- our triggers are made anew
        # postgres: ALTER TABLE "tickets" DROP COLUMN "done"
        drop_column("tickets", "done"),
    ),
)
