// REST and tRPC queries that need no database, beside bare HTTP in the same runtime, fastify and stock tRPC.
import { ERROR_CODES } from "../../../protocol/index.ts";
import { startBenchGateway } from "../gateway.ts";
import { type LoaderReply, startLoader } from "../loader.ts";
import { startReference } from "../peers.ts";
import type { BenchPlan } from "../plan.ts";
import type { Finding } from "../report.ts";
import { type PreparedRequest, writeRequests } from "../requests.ts";
import { type Comparison, compareSubjects, type Subject } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const CALLERS = 64;

const get = (path: string, expected: string): PreparedRequest => ({ method: "GET", path, expected });
/** Many inputs, each with its own expected answer. */
const byCode = (path: (input: string) => string): readonly PreparedRequest[] =>
  ERROR_CODES.map((code) => get(path(encodeURIComponent(JSON.stringify({ code }))), `"code":"${code}"`));

const PAIRS: readonly Comparison[] = [
  { id: "rest", of: "bare", by: "rest" },
  { id: "rest-vs-fastify", of: "fastify", by: "rest" },
  { id: "trpc", of: "bare", by: "trpc" },
  { id: "trpc-vs-stock", of: "stock trpc", by: "trpc" },
  { id: "trpc-input", of: "bare", by: "trpc input" },
  { id: "trpc-input-vs-stock", of: "stock trpc input", by: "trpc input" },
];

/** Measures one node without Redis, so that Redis does not affect the figures. */
export const transports = (stage: BenchStage, plan: BenchPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const gateway = await startBenchGateway(scope, { redis: false });
    const [bare, fastify, stock] = [
      await startReference(scope, "http-uws"),
      await startReference(scope, "http-fastify"),
      await startReference(scope, "http-trpc"),
    ];
    const subject = async (
      name: string,
      { pid, port }: { readonly pid: number; readonly port: number },
      requests: readonly PreparedRequest[],
    ): Promise<Subject> => {
      const loader = await startLoader(scope, { protocol: "http", port, connections: CALLERS, serverPids: [pid] });
      await loader.requests(writeRequests(scope, requests));
      const visit = async (): Promise<LoaderReply> => {
        // Servers close connections that idle for seconds, and a subject idles while others are visited.
        await loader.connect(CALLERS, CALLERS);
        return loader.run({ warmMs: plan.warmMs, windowMs: plan.windowMs, connections: CALLERS });
      };
      return { name, visit };
    };
    const alive = `"alive":true`;
    const subjects = [
      await subject("bare", bare, [get("/live", alive)]),
      await subject("rest", gateway, [get("/v1/health/live", alive)]),
      await subject("trpc", gateway, [get("/trpc/health.live", alive)]),
      await subject(
        "trpc input",
        gateway,
        byCode((input) => `/trpc/general.error?input=${input}`),
      ),
      await subject("fastify", fastify, [get("/live", alive)]),
      await subject("stock trpc", stock, [get("/live", alive)]),
      await subject(
        "stock trpc input",
        stock,
        byCode((input) => `/error?input=${input}`),
      ),
    ];
    return compareSubjects(subjects, PAIRS, plan);
  });
