-- CreateTable
CREATE TABLE "mesh_routes" (
    "route_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "network" TEXT,
    "domains" TEXT[],
    "host" TEXT,
    "port" INTEGER,
    "consumers" JSONB NOT NULL,
    "listen_port" INTEGER,
    "probe" JSONB,
    "enabled" BOOLEAN NOT NULL,
    "allow_public" BOOLEAN NOT NULL,
    "target_hash" TEXT NOT NULL,
    "approval" TEXT NOT NULL DEFAULT 'pending',
    "decided_by" TEXT,
    "status" TEXT NOT NULL DEFAULT 'down',
    "active_router" TEXT,
    "since" TIMESTAMPTZ(3) NOT NULL,
    "probe_at" TIMESTAMPTZ(3) NOT NULL,
    "connections" BIGINT NOT NULL DEFAULT 0,
    "bytes_in" BIGINT NOT NULL DEFAULT 0,
    "bytes_out" BIGINT NOT NULL DEFAULT 0,
    "last_used_at" TIMESTAMPTZ(3),
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "mesh_routes_pkey" PRIMARY KEY ("route_id")
);

-- CreateTable
CREATE TABLE "mesh_routers" (
    "tenant_id" TEXT NOT NULL,
    "route_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "metric" INTEGER NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'unknown',
    "misses" INTEGER NOT NULL DEFAULT 0,
    "reason" TEXT,
    "checked_at" TIMESTAMPTZ(3),

    CONSTRAINT "mesh_routers_pkey" PRIMARY KEY ("tenant_id","route_id","device_id")
);

-- CreateIndex
CREATE INDEX "mesh_routes_tenant_id_created_at_idx" ON "mesh_routes"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "mesh_routes_probe_at_idx" ON "mesh_routes"("probe_at");

-- CreateIndex
CREATE UNIQUE INDEX "mesh_routes_tenant_id_route_id_key" ON "mesh_routes"("tenant_id", "route_id");

-- CreateIndex
CREATE UNIQUE INDEX "mesh_routes_tenant_id_target_hash_key" ON "mesh_routes"("tenant_id", "target_hash");

-- CreateIndex
CREATE UNIQUE INDEX "mesh_routes_tenant_id_listen_port_key" ON "mesh_routes"("tenant_id", "listen_port");

-- CreateIndex
CREATE INDEX "mesh_routers_tenant_id_device_id_idx" ON "mesh_routers"("tenant_id", "device_id");

-- AddForeignKey
ALTER TABLE "mesh_routes" ADD CONSTRAINT "mesh_routes_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mesh_routers" ADD CONSTRAINT "mesh_routers_tenant_id_route_id_fkey" FOREIGN KEY ("tenant_id", "route_id") REFERENCES "mesh_routes"("tenant_id", "route_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mesh_routers" ADD CONSTRAINT "mesh_routers_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;
