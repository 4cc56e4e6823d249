// Creates a tenant without plan limits on the local gateway, with the gateway's own command line.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { packageRoot } from "./agent/index.ts";

const WITHIN_MS = 120_000;

const Bootstrapped = z.object({ baseUrl: z.url(), tenantId: z.string(), token: z.string(), apiKey: z.string(), enrollmentToken: z.string() });
export type Bootstrapped = z.infer<typeof Bootstrapped>;

const run = (command: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...command], { cwd, env, stdio: ["ignore", "pipe", "pipe"], timeout: WITHIN_MS });
    let [out, errors] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-2_000);
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(out) : reject(new Error(`bootstrap failed (exit ${code}): ${errors.trim() || out.trim()}`))));
  });

export const bootstrap = async (
  tenant = { name: "Simulator", slug: `sim-${randomUUID().slice(0, 8)}` },
  env: NodeJS.ProcessEnv = process.env,
): Promise<Bootstrapped> => {
  const root = packageRoot(import.meta.dirname);
  const fromSource = import.meta.filename.endsWith(".ts");
  const cli = fromSource ? ["--import", "tsx", "server/cli.ts"] : ["dist/server/cli.js"];
  const out = await run([...cli, "bootstrap", "--json", "--unlimited", "--tenant", tenant.name, "--slug", tenant.slug], root, env);
  return Bootstrapped.parse(JSON.parse(out));
};
