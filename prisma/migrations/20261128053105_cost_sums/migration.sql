-- CreateTable
CREATE TABLE "cost_months" (
    "tenant_id" TEXT NOT NULL,
    "month" DATE NOT NULL,
    "device_id" TEXT NOT NULL,
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

    CONSTRAINT "cost_months_pkey" PRIMARY KEY ("tenant_id","month","device_id")
);

-- CreateTable
CREATE TABLE "cost_app_months" (
    "tenant_id" TEXT NOT NULL,
    "month" DATE NOT NULL,
    "device_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "deployment_id" TEXT,
    "device" BIGINT NOT NULL,
    "fixed" BIGINT NOT NULL,
    "energy" BIGINT NOT NULL,
    "cpu" BIGINT NOT NULL,
    "memory" BIGINT NOT NULL,
    "storage" BIGINT NOT NULL,
    "total" BIGINT NOT NULL,

    CONSTRAINT "cost_app_months_pkey" PRIMARY KEY ("tenant_id","month","device_id","app_id")
);

-- CreateTable
CREATE TABLE "cost_totals" (
    "tenant_id" TEXT NOT NULL,
    "day" DATE NOT NULL,
    "minutes" BIGINT NOT NULL,
    "device" BIGINT NOT NULL,
    "fixed" BIGINT NOT NULL,
    "energy" BIGINT NOT NULL,
    "cpu" BIGINT NOT NULL,
    "memory" BIGINT NOT NULL,
    "storage" BIGINT NOT NULL,
    "shared" BIGINT NOT NULL,
    "idle" BIGINT NOT NULL,
    "total" BIGINT NOT NULL,

    CONSTRAINT "cost_totals_pkey" PRIMARY KEY ("tenant_id","day")
);

-- CreateIndex
CREATE INDEX "cost_months_month_idx" ON "cost_months"("month");

-- CreateIndex
CREATE INDEX "cost_app_months_month_idx" ON "cost_app_months"("month");

-- CreateIndex
CREATE INDEX "cost_totals_day_idx" ON "cost_totals"("day");
