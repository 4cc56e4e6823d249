-- By hand. No code of ours leaves a row without its parent; a hand in the database may have. Nobody can reach such a row through the API: a device,
-- for one, is known together with its tenant. So it goes, and what only named a deployment gets the tenant's default one, as pairing does it.
DELETE FROM "memberships" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id");
DELETE FROM "api_keys" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id");
DELETE FROM "stream_tickets" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id");
DELETE FROM "enrollment_tokens" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id");
UPDATE "enrollment_tokens" o SET "deployment_id" = NULL
WHERE o."deployment_id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "deployments" d WHERE d."tenant_id" = o."tenant_id" AND d."deployment_id" = o."deployment_id");

WITH gone AS (DELETE FROM "devices" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id") RETURNING "device_id")
DELETE FROM "device_presence" p USING gone WHERE p."device_id" = gone."device_id";
UPDATE "devices" o SET "deployment_id" = standard."deployment_id" FROM "deployments" standard
WHERE standard."tenant_id" = o."tenant_id" AND standard."is_default"
  AND NOT EXISTS (SELECT 1 FROM "deployments" d WHERE d."tenant_id" = o."tenant_id" AND d."deployment_id" = o."deployment_id");
DELETE FROM "deployments" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id");

DELETE FROM "enrollments" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id") AND o."tenant_id" IS NOT NULL
   OR o."device_id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "devices" d WHERE d."tenant_id" = o."tenant_id" AND d."device_id" = o."device_id");
DELETE FROM "pairings" o WHERE NOT EXISTS (SELECT 1 FROM "tenants" t WHERE t."tenant_id" = o."tenant_id") AND o."tenant_id" IS NOT NULL
   OR o."device_id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "devices" d WHERE d."tenant_id" = o."tenant_id" AND d."device_id" = o."device_id")
   OR o."replaces_device_id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "devices" d WHERE d."tenant_id" = o."tenant_id" AND d."device_id" = o."replaces_device_id");

-- NOT VALID holds from now on and reads nothing, so the tables are locked for a moment only. The next migration looks at what was there before.
-- AddForeignKey
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "deployments" ADD CONSTRAINT "deployments_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE RESTRICT ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "devices" ADD CONSTRAINT "devices_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE RESTRICT ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "devices" ADD CONSTRAINT "devices_tenant_id_deployment_id_fkey" FOREIGN KEY ("tenant_id", "deployment_id") REFERENCES "deployments"("tenant_id", "deployment_id") ON DELETE RESTRICT ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "stream_tickets" ADD CONSTRAINT "stream_tickets_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "pairings" ADD CONSTRAINT "pairings_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "pairings" ADD CONSTRAINT "pairings_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "pairings" ADD CONSTRAINT "pairings_tenant_id_replaces_device_id_fkey" FOREIGN KEY ("tenant_id", "replaces_device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "enrollments" ADD CONSTRAINT "enrollments_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "enrollments" ADD CONSTRAINT "enrollments_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "enrollment_tokens" ADD CONSTRAINT "enrollment_tokens_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "enrollment_tokens" ADD CONSTRAINT "enrollment_tokens_tenant_id_deployment_id_fkey" FOREIGN KEY ("tenant_id", "deployment_id") REFERENCES "deployments"("tenant_id", "deployment_id") ON DELETE RESTRICT ON UPDATE CASCADE NOT VALID;

-- AddForeignKey
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;
