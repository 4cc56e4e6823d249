-- AlterTable
ALTER TABLE "tunnels" ADD COLUMN     "port" INTEGER;

-- Safe because an installation has some thousand tunnels at most.
CREATE UNIQUE INDEX "tunnels_port_key" ON "tunnels"("port");
