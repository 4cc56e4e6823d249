// Creates a tenant without plan limits on the local gateway, with the gateway's own command line.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { packageRoot, systemTime as time } from "./agent/index.ts";
import { runProgram } from "./children/index.ts";

const WITHIN_MS = 120_000;

const Bootstrapped = z.object({ baseUrl: z.url(), tenantId: z.string(), token: z.string(), apiKey: z.string(), enrollmentToken: z.string() });
export type Bootstrapped = z.infer<typeof Bootstrapped>;

const run = async (words: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string> => {
  const { outcome, code, error, output, errors } = await runProgram({ command: process.execPath, words, cwd, env, time, withinMs: WITHIN_MS });
  if (outcome === "ended" && code === 0) return output;
  const why = errors.trim().slice(-2_000) || error?.message || output.trim().slice(-2_000);
  throw new Error(outcome === "late" ? `bootstrap did not end within ${WITHIN_MS / 1_000} s` : `bootstrap failed (exit ${code}): ${why}`);
};

export const bootstrap = async (
  tenant = { name: "Simulator", slug: `sim-${randomUUID().slice(0, 8)}` },
  env: NodeJS.ProcessEnv = process.env,
  root = packageRoot(import.meta.dirname),
): Promise<Bootstrapped> => {
  const fromSource = import.meta.filename.endsWith(".ts");
  const cli = fromSource ? ["--import", "tsx", "server/cli.ts"] : ["dist/server/cli.js"];
  const out = await run([...cli, "bootstrap", "--json", "--unlimited", "--tenant", tenant.name, "--slug", tenant.slug], root, env);
  return Bootstrapped.parse(JSON.parse(out));
};
