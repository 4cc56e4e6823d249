-- AlterTable
ALTER TABLE "gateway_nodes" ADD COLUMN     "overloaded" BOOLEAN NOT NULL DEFAULT false;
