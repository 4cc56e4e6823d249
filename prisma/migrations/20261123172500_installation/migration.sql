-- AlterTable
ALTER TABLE "gateway_nodes" ADD COLUMN     "sealing_key" TEXT NOT NULL DEFAULT '';

-- CreateTable
CREATE TABLE "installation" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "key_check" BYTEA,
    "serves_from" TEXT NOT NULL DEFAULT '',

    CONSTRAINT "installation_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "installation_only_one" CHECK ("id" = 1)
);
