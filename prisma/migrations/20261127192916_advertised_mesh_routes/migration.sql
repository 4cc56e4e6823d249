-- AlterTable
ALTER TABLE "mesh_routes" ADD COLUMN     "advertised_by" TEXT;
