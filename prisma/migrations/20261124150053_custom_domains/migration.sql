-- CreateTable
CREATE TABLE "custom_domains" (
    "domain_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "hostname" TEXT NOT NULL,
    "target_kind" TEXT,
    "target_id" TEXT,
    "status" TEXT NOT NULL DEFAULT 'pending_verification',
    "status_since" TIMESTAMPTZ(3) NOT NULL,
    "failure" TEXT,
    "token" TEXT NOT NULL,
    "verified_at" TIMESTAMPTZ(3),
    "checks" JSONB NOT NULL DEFAULT '{}',
    "check_count" INTEGER NOT NULL DEFAULT 0,
    "misses" INTEGER NOT NULL DEFAULT 0,
    "last_checked_at" TIMESTAMPTZ(3),
    "next_check_at" TIMESTAMPTZ(3),
    "asked_at" TIMESTAMPTZ(3),
    "cert_source" TEXT,
    "cert_chain" TEXT,
    "cert_key" BYTEA,
    "cert_issuer" TEXT,
    "cert_not_before" TIMESTAMPTZ(3),
    "cert_not_after" TIMESTAMPTZ(3),
    "cert_warned_at" TIMESTAMPTZ(3),
    "next_renewal_at" TIMESTAMPTZ(3),
    "order_url" TEXT,
    "order_key" BYTEA,
    "order_not_before" TIMESTAMPTZ(3),
    "order_failures" INTEGER NOT NULL DEFAULT 0,
    "order_error" TEXT,
    "ordered_at" TIMESTAMPTZ(3),
    "challenge_token" TEXT,
    "challenge_answer" TEXT,
    "lease_by" TEXT,
    "lease_until" TIMESTAMPTZ(3),
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "custom_domains_pkey" PRIMARY KEY ("domain_id")
);

-- CreateTable
CREATE TABLE "acme_accounts" (
    "directory_url" TEXT NOT NULL,
    "key" BYTEA NOT NULL,
    "account_url" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "acme_accounts_pkey" PRIMARY KEY ("directory_url")
);

-- CreateIndex
CREATE INDEX "custom_domains_tenant_id_created_at_idx" ON "custom_domains"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "custom_domains_next_check_at_idx" ON "custom_domains"("next_check_at");

-- CreateIndex
CREATE INDEX "custom_domains_challenge_token_idx" ON "custom_domains"("challenge_token");

-- CreateIndex
CREATE INDEX "custom_domains_hostname_idx" ON "custom_domains"("hostname");

-- CreateIndex
CREATE INDEX "custom_domains_ordered_at_idx" ON "custom_domains"("ordered_at");

-- CreateIndex
CREATE UNIQUE INDEX "custom_domains_tenant_id_hostname_key" ON "custom_domains"("tenant_id", "hostname");

-- CreateIndex
CREATE UNIQUE INDEX "custom_domains_verified_hostname_key" ON "custom_domains"("hostname") WHERE (verified_at IS NOT NULL);

-- AddForeignKey
ALTER TABLE "custom_domains" ADD CONSTRAINT "custom_domains_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
