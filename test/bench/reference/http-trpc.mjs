// Stock tRPC on its standalone server: a query without input, and one whose input zod checks. Frozen; see frozen.json.
import { initTRPC } from "@trpc/server";
import { createHTTPServer } from "@trpc/server/adapters/standalone";
import { z } from "zod";

const t = initTRPC.create();
const startedAt = performance.now();
const router = t.router({
  live: t.procedure.query(() => ({ alive: true, timestamp: new Date().toISOString(), uptime: performance.now() - startedAt })),
  error: t.procedure
    .input(z.strictObject({ code: z.string().max(64) }))
    .query(({ input }) => ({ code: input.code, status: 404, retryable: false, message: "There is no such thing.", operations: ["one", "two"] })),
});
const server = createHTTPServer({ router });
server.listen(0, "127.0.0.1", () => process.stdout.write(`ready at ${server.address().port}\n`));
