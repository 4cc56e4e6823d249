// Beside a local gateway: gets a tenant of its own, without limits, from the gateway's own command line.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";

const WITHIN_MS = 120_000;

const Bootstrapped = z.object({ baseUrl: z.url(), tenantId: z.string(), token: z.string(), apiKey: z.string(), enrollmentToken: z.string() });
export type Bootstrapped = z.infer<typeof Bootstrapped>;

/** The folder of package.json: two levels up from the compiled file, one from the source. */
export const packageRoot = (from: string): string => {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) if (existsSync(join(folder, "package.json"))) return folder;
  throw new Error("package.json was not found above the simulator");
};

const run = (command: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...command], { cwd, env, stdio: ["ignore", "pipe", "pipe"], timeout: WITHIN_MS });
    let [out, complaints] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaints = (complaints + text).slice(-2_000);
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(out) : reject(new Error(`bootstrap failed (exit ${code}): ${complaints.trim() || out.trim()}`))));
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
