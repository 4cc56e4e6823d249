-- CreateTable
CREATE TABLE "gateway_nodes" (
    "node_id" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "host" TEXT NOT NULL,
    "pid" INTEGER NOT NULL,
    "version" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "draining" BOOLEAN NOT NULL DEFAULT false,
    "drain_asked_at" TIMESTAMPTZ(3),
    "connections" INTEGER NOT NULL DEFAULT 0,
    "ready" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "gateway_nodes_pkey" PRIMARY KEY ("node_id")
);

-- CreateIndex
CREATE INDEX "gateway_nodes_seen_at_idx" ON "gateway_nodes"("seen_at");
