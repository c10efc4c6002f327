"""Urgency."""

from diptych.migrate import Check, Key, Migration, Table, add_check, add_column, column, create_table

migration = Migration(
    after="0004_numbers",
    leads_to="sha256:c2964c34bb0f640af1ebb6196eae7ba1",
    expand=(
        # sqlite:   CREATE TABLE "labels" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "organisation_id" TEXT NOT NULL REFERENCES "organisations" (id) ON DELETE CASCADE, "name" TEXT NOT NULL )
        # sqlite:   CREATE UNIQUE INDEX "labels_organisation_id_name_key" ON "labels" ("organisation_id", "name")
        # sqlite:   CREATE INDEX "labels_organisation_id" ON "labels" ("organisation_id", id)
        # postgres: CREATE TABLE "labels" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "organisation_id" uuid NOT NULL, "name" text COLLATE "C" NOT NULL )
        # postgres: CREATE UNIQUE INDEX "labels_organisation_id_name_key" ON "labels" ("organisation_id", "name")
        # postgres: CREATE INDEX "labels_organisation_id" ON "labels" ("organisation_id", id)
        # postgres: ALTER TABLE "labels" ADD CONSTRAINT "labels_organisation_id_fkey" FOREIGN KEY ("organisation_id") REFERENCES "organisations" (id) ON DELETE CASCADE
        create_table("labels", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "organisation_id": column("ID", target="organisations", on_delete="cascade"),
            "name": column("String"),
        }, keys=(Key(("organisation_id",)), Key(("organisation_id", "name"), unique=True)))),
        # sqlite:   CREATE TABLE "ticket_labels" ( "id" TEXT PRIMARY KEY NOT NULL, "version" INTEGER NOT NULL DEFAULT 1, "created_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "updated_at" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), "ticket_id" TEXT NOT NULL REFERENCES "tickets" (id) ON DELETE CASCADE, "label_id" TEXT NOT NULL REFERENCES "labels" (id) ON DELETE CASCADE )
        # sqlite:   CREATE UNIQUE INDEX "ticket_labels_ticket_id_label_id_key" ON "ticket_labels" ("ticket_id", "label_id")
        # sqlite:   CREATE INDEX "ticket_labels_ticket_id" ON "ticket_labels" ("ticket_id", id)
        # sqlite:   CREATE INDEX "ticket_labels_label_id" ON "ticket_labels" ("label_id", id)
        # postgres: CREATE TABLE "ticket_labels" ( "id" uuid PRIMARY KEY NOT NULL, "version" integer NOT NULL DEFAULT 1, "created_at" timestamp with time zone NOT NULL DEFAULT now(), "updated_at" timestamp with time zone NOT NULL DEFAULT now(), "ticket_id" uuid NOT NULL, "label_id" uuid NOT NULL )
        # postgres: CREATE UNIQUE INDEX "ticket_labels_ticket_id_label_id_key" ON "ticket_labels" ("ticket_id", "label_id")
        # postgres: CREATE INDEX "ticket_labels_ticket_id" ON "ticket_labels" ("ticket_id", id)
        # postgres: CREATE INDEX "ticket_labels_label_id" ON "ticket_labels" ("label_id", id)
        # postgres: ALTER TABLE "ticket_labels" ADD CONSTRAINT "ticket_labels_ticket_id_fkey" FOREIGN KEY ("ticket_id") REFERENCES "tickets" (id) ON DELETE CASCADE
        # postgres: ALTER TABLE "ticket_labels" ADD CONSTRAINT "ticket_labels_label_id_fkey" FOREIGN KEY ("label_id") REFERENCES "labels" (id) ON DELETE CASCADE
        create_table("ticket_labels", Table({
            "id": column("ID"),
            "version": column("Int"),
            "created_at": column("DateTime"),
            "updated_at": column("DateTime"),
            "ticket_id": column("ID", target="tickets", on_delete="cascade"),
            "label_id": column("ID", target="labels", on_delete="cascade"),
        }, keys=(Key(("ticket_id",)), Key(("label_id",)), Key(("ticket_id", "label_id"), unique=True)))),
        # sqlite:   -- stored changes follow
        # sqlite:   ALTER TABLE "tickets" ADD COLUMN "priority" TEXT NOT NULL DEFAULT 'normal'
        # postgres: ALTER TABLE "tickets" ADD COLUMN "priority" text COLLATE "C" NOT NULL DEFAULT 'normal'
        # postgres: -- stored changes follow
        add_column("tickets", "priority", column("Enum", values=("low", "normal", "high"), default="normal")),
        # sqlite:   ALTER TABLE "tickets" ADD COLUMN "due" TEXT
        # postgres: ALTER TABLE "tickets" ADD COLUMN "due" timestamp with time zone
        add_column("tickets", "due", column("DateTime", nullable=True)),
        # sqlite:   -- stored changes follow
        # sqlite:   ALTER TABLE "tickets" ADD COLUMN "asked" TEXT NOT NULL DEFAULT '[]'
        # postgres: ALTER TABLE "tickets" ADD COLUMN "asked" jsonb NOT NULL DEFAULT '[]'
        # postgres: -- stored changes follow
        add_column("tickets", "asked", column("[String]", default=[])),
        # sqlite:   ALTER TABLE "tickets" ADD CONSTRAINT "tickets_urgent_is_due_25c35b10" CHECK (((("priority" = 'high') IS NOT TRUE OR ("due" IS NULL) IS NOT TRUE)) IS TRUE)
        # postgres: ALTER TABLE "tickets" ADD CONSTRAINT "tickets_urgent_is_due_b794b9d6" CHECK (((("priority" = ('high'::text COLLATE "C")) IS NOT TRUE OR ("due" IS NULL) IS NOT TRUE)) IS TRUE) NOT VALID
        # postgres: ALTER TABLE "tickets" VALIDATE CONSTRAINT "tickets_urgent_is_due_b794b9d6"
        add_check("tickets", "urgent_is_due", Check('((("priority" = \'high\') IS NOT TRUE OR ("due" IS NULL) IS NOT TRUE)) IS TRUE', '((("priority" = (\'high\'::text COLLATE "C")) IS NOT TRUE OR ("due" IS NULL) IS NOT TRUE)) IS TRUE')),
    ),
)
