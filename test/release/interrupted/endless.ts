// Starts what tests start, says that it stands, and never ends.
import { writeFileSync } from "node:fs";
import { test } from "vitest";
import { runToEnd } from "../../flows/processes.ts";
import { startRedis } from "../../kit/stores/redis.ts";

test("never ends", async () => {
  await startRedis();
  const program = runToEnd([process.execPath, "-e", "process.on('SIGTERM', () => 0); setInterval(() => 0, 1_000)"], { env: {}, withinMs: 600_000 });
  writeFileSync(process.env["STANDS"] ?? "", process.env["TEST_RUN"] ?? "");
  await program;
});
