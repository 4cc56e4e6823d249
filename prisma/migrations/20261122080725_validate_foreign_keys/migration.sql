-- By hand: reads every row beside the gateways, which go on writing.
ALTER TABLE "api_keys" VALIDATE CONSTRAINT "api_keys_tenant_id_fkey";
ALTER TABLE "deployments" VALIDATE CONSTRAINT "deployments_tenant_id_fkey";
ALTER TABLE "devices" VALIDATE CONSTRAINT "devices_tenant_id_fkey";
ALTER TABLE "devices" VALIDATE CONSTRAINT "devices_tenant_id_deployment_id_fkey";
ALTER TABLE "stream_tickets" VALIDATE CONSTRAINT "stream_tickets_tenant_id_fkey";
ALTER TABLE "pairings" VALIDATE CONSTRAINT "pairings_tenant_id_fkey";
ALTER TABLE "pairings" VALIDATE CONSTRAINT "pairings_tenant_id_device_id_fkey";
ALTER TABLE "pairings" VALIDATE CONSTRAINT "pairings_tenant_id_replaces_device_id_fkey";
ALTER TABLE "enrollments" VALIDATE CONSTRAINT "enrollments_tenant_id_fkey";
ALTER TABLE "enrollments" VALIDATE CONSTRAINT "enrollments_tenant_id_device_id_fkey";
ALTER TABLE "enrollment_tokens" VALIDATE CONSTRAINT "enrollment_tokens_tenant_id_fkey";
ALTER TABLE "enrollment_tokens" VALIDATE CONSTRAINT "enrollment_tokens_tenant_id_deployment_id_fkey";
ALTER TABLE "memberships" VALIDATE CONSTRAINT "memberships_tenant_id_fkey";
