// Settings of a gateway on the run's own PostgreSQL, for flows in which the embedded one is not the subject: it costs seconds to make and to stop.
import { createTestDatabase } from "../kit/stores/database.ts";
import type { Env } from "./processes.ts";

export const onSharedServer = async (more: Env = {}): Promise<Env> => ({
  DATABASE_URL: await createTestDatabase(),
  MASTER_KEY: Buffer.alloc(32, 3).toString("base64"),
  ...more,
});
