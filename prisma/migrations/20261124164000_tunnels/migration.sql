-- CreateTable
CREATE TABLE "tunnels" (
    "tunnel_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT,
    "app_id" TEXT,
    "name" TEXT NOT NULL,
    "hostname" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "protocol" TEXT NOT NULL,
    "service" TEXT NOT NULL,
    "target_port" INTEGER,
    "access_mode" TEXT NOT NULL,
    "allow" TEXT[],
    "host_header" TEXT NOT NULL DEFAULT 'preserve',
    "token_hash" TEXT NOT NULL,
    "token" BYTEA NOT NULL,
    "token_hint" TEXT NOT NULL,
    "health" TEXT NOT NULL DEFAULT 'inactive',
    "service_state" TEXT NOT NULL DEFAULT 'unknown',
    "failure" JSONB,
    "last_seen_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "tunnels_pkey" PRIMARY KEY ("tunnel_id")
);

-- CreateTable
CREATE TABLE "tunnel_carriers" (
    "carrier_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "node_id" TEXT NOT NULL,
    "relay_url" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "client_version" TEXT,
    "opened_at" TIMESTAMPTZ(3) NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "tunnel_carriers_pkey" PRIMARY KEY ("carrier_id")
);

-- CreateIndex
CREATE INDEX "tunnels_tenant_id_created_at_idx" ON "tunnels"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "tunnels_tenant_id_device_id_idx" ON "tunnels"("tenant_id", "device_id");

-- CreateIndex
CREATE UNIQUE INDEX "tunnels_hostname_key" ON "tunnels"("hostname");

-- CreateIndex
CREATE UNIQUE INDEX "tunnels_token_hash_key" ON "tunnels"("token_hash");

-- CreateIndex
CREATE INDEX "tunnel_carriers_tenant_id_key_idx" ON "tunnel_carriers"("tenant_id", "key");

-- CreateIndex
CREATE INDEX "tunnel_carriers_seen_at_idx" ON "tunnel_carriers"("seen_at");

-- AddForeignKey
ALTER TABLE "tunnels" ADD CONSTRAINT "tunnels_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tunnels" ADD CONSTRAINT "tunnels_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tunnel_carriers" ADD CONSTRAINT "tunnel_carriers_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
