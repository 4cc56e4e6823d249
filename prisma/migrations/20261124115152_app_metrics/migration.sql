-- CreateTable
CREATE TABLE "app_metrics" (
    "tenant_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "slot" SMALLINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "minute" TIMESTAMPTZ(3) NOT NULL,
    "samples" SMALLINT NOT NULL,
    "cpu_samples" SMALLINT NOT NULL,
    "cpu_sum" DOUBLE PRECISION NOT NULL,
    "cpu_max" DOUBLE PRECISION NOT NULL,
    "memory_samples" SMALLINT NOT NULL,
    "memory_sum" DOUBLE PRECISION NOT NULL,
    "memory_max" DOUBLE PRECISION NOT NULL,
    "response_samples" SMALLINT NOT NULL,
    "response_sum" DOUBLE PRECISION NOT NULL,
    "response_max" DOUBLE PRECISION NOT NULL,

    CONSTRAINT "app_metrics_pkey" PRIMARY KEY ("tenant_id","app_id","slot")
);

-- AddForeignKey
ALTER TABLE "app_metrics" ADD CONSTRAINT "app_metrics_tenant_id_app_id_fkey" FOREIGN KEY ("tenant_id", "app_id") REFERENCES "apps"("tenant_id", "app_id") ON DELETE CASCADE ON UPDATE CASCADE;
