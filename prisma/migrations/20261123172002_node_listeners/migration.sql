-- AlterTable
ALTER TABLE "gateway_nodes" ADD COLUMN     "listeners" TEXT[] DEFAULT ARRAY[]::TEXT[];
