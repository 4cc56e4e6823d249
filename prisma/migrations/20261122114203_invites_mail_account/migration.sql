-- CreateTable
CREATE TABLE "user_profiles" (
    "user_id" TEXT NOT NULL,
    "name" TEXT,
    "locale" TEXT,
    "timezone" TEXT,
    "preferences" JSONB NOT NULL DEFAULT '{}',
    "notifications" JSONB NOT NULL DEFAULT '{}',
    "default_tenant_id" TEXT,
    "delete_after" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "user_profiles_pkey" PRIMARY KEY ("user_id")
);

-- CreateTable
CREATE TABLE "invites" (
    "invite_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "role_id" TEXT NOT NULL,
    "selector" JSONB,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "hash" BYTEA NOT NULL,
    "message" TEXT,
    "invited_by" TEXT NOT NULL,
    "inviter_name" TEXT,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "accepted_at" TIMESTAMPTZ(3),
    "accepted_by" TEXT,
    "declined_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "send_count" INTEGER NOT NULL DEFAULT 1,
    "last_sent_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "mail_id" TEXT,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "invites_pkey" PRIMARY KEY ("invite_id")
);

-- CreateTable
CREATE TABLE "mails" (
    "mail_id" TEXT NOT NULL,
    "tenant_id" TEXT,
    "recipient" TEXT NOT NULL,
    "content" BYTEA,
    "status" TEXT NOT NULL DEFAULT 'queued',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_attempt_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "sent_at" TIMESTAMPTZ(3),

    CONSTRAINT "mails_pkey" PRIMARY KEY ("mail_id")
);

-- CreateIndex
CREATE INDEX "user_profiles_delete_after_idx" ON "user_profiles"("delete_after") WHERE (delete_after IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "invites_hash_key" ON "invites"("hash");

-- CreateIndex
CREATE INDEX "invites_tenant_id_created_at_idx" ON "invites"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "invites_pending_expires_at_idx" ON "invites"("expires_at") WHERE ("status" = 'pending');

-- CreateIndex
CREATE UNIQUE INDEX "invites_pending_tenant_email_key" ON "invites"("tenant_id", "email") WHERE ("status" = 'pending');

-- CreateIndex
CREATE INDEX "mails_tenant_id_idx" ON "mails"("tenant_id");

-- CreateIndex
CREATE INDEX "mails_created_at_idx" ON "mails"("created_at");

-- CreateIndex
CREATE INDEX "mails_queued_next_attempt_at_idx" ON "mails"("next_attempt_at") WHERE ("status" = 'queued');

-- AddForeignKey
ALTER TABLE "invites" ADD CONSTRAINT "invites_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mails" ADD CONSTRAINT "mails_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
