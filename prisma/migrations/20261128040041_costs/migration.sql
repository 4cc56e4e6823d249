-- CreateTable
CREATE TABLE "cost_rates" (
    "tenant_id" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "valid_from" DATE NOT NULL,
    "currency" TEXT NOT NULL,
    "shared_monthly" BIGINT NOT NULL,
    "device" JSONB NOT NULL,
    "by_tag" JSONB NOT NULL,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "cost_rates_pkey" PRIMARY KEY ("tenant_id","version")
);

-- CreateTable
CREATE TABLE "cost_ledgers" (
    "tenant_id" TEXT NOT NULL,
    "through" DATE NOT NULL,
    "lease_until" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "cost_ledgers_pkey" PRIMARY KEY ("tenant_id")
);

-- CreateTable
CREATE TABLE "cost_days" (
    "tenant_id" TEXT NOT NULL,
    "day" DATE NOT NULL,
    "device_id" TEXT NOT NULL,
    "rates_version" INTEGER NOT NULL,
    "minutes" INTEGER NOT NULL,
    "device" BIGINT NOT NULL,
    "fixed" BIGINT NOT NULL,
    "energy" BIGINT NOT NULL,
    "cpu" BIGINT NOT NULL,
    "memory" BIGINT NOT NULL,
    "storage" BIGINT NOT NULL,
    "shared" BIGINT NOT NULL,
    "idle" BIGINT NOT NULL,
    "total" BIGINT NOT NULL,

    CONSTRAINT "cost_days_pkey" PRIMARY KEY ("tenant_id","day","device_id")
);

-- CreateTable
CREATE TABLE "cost_app_days" (
    "tenant_id" TEXT NOT NULL,
    "day" DATE NOT NULL,
    "device_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "deployment_id" TEXT,
    "memory_weight" BIGINT NOT NULL,
    "disk_weight" BIGINT NOT NULL,
    "device" BIGINT NOT NULL,
    "fixed" BIGINT NOT NULL,
    "energy" BIGINT NOT NULL,
    "cpu" BIGINT NOT NULL,
    "memory" BIGINT NOT NULL,
    "storage" BIGINT NOT NULL,
    "total" BIGINT NOT NULL,

    CONSTRAINT "cost_app_days_pkey" PRIMARY KEY ("tenant_id","day","device_id","app_id")
);

-- CreateTable
CREATE TABLE "cost_budgets" (
    "budget_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "amount" BIGINT NOT NULL,
    "scope" JSONB NOT NULL,
    "thresholds" JSONB NOT NULL,
    "month" TEXT NOT NULL DEFAULT '',
    "spent" BIGINT NOT NULL DEFAULT 0,
    "expected" BIGINT,
    "through" DATE,
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "cost_budgets_pkey" PRIMARY KEY ("budget_id")
);

-- CreateTable
CREATE TABLE "cost_budget_notices" (
    "tenant_id" TEXT NOT NULL,
    "budget_id" TEXT NOT NULL,
    "month" TEXT NOT NULL,
    "percent" INTEGER NOT NULL,
    "basis" TEXT NOT NULL,
    "reached_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "cost_budget_notices_pkey" PRIMARY KEY ("tenant_id","budget_id","month","percent","basis")
);

-- CreateIndex
CREATE UNIQUE INDEX "cost_rates_tenant_id_valid_from_key" ON "cost_rates"("tenant_id", "valid_from");

-- CreateIndex
CREATE INDEX "cost_ledgers_through_idx" ON "cost_ledgers"("through");

-- CreateIndex
CREATE INDEX "cost_days_day_idx" ON "cost_days"("day");

-- CreateIndex
CREATE INDEX "cost_app_days_day_idx" ON "cost_app_days"("day");

-- CreateIndex
CREATE INDEX "cost_budgets_tenant_id_created_at_idx" ON "cost_budgets"("tenant_id", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "cost_budgets_tenant_id_budget_id_key" ON "cost_budgets"("tenant_id", "budget_id");

-- AddForeignKey
ALTER TABLE "cost_rates" ADD CONSTRAINT "cost_rates_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "cost_ledgers" ADD CONSTRAINT "cost_ledgers_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "cost_budgets" ADD CONSTRAINT "cost_budgets_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "cost_budget_notices" ADD CONSTRAINT "cost_budget_notices_tenant_id_budget_id_fkey" FOREIGN KEY ("tenant_id", "budget_id") REFERENCES "cost_budgets"("tenant_id", "budget_id") ON DELETE CASCADE ON UPDATE CASCADE;
