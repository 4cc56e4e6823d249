// Parses the simulator's command line, and reports every problem in it.
import { parseArgs } from "node:util";
import { z } from "zod";

export const HELP = `Runs simulated agents against a real gateway: they connect, send heartbeats, run commands and acknowledge them.

  npm run sim -- [options]
  npm run agent -- --identity FILE         run one device with its identity from pairing; see npm run agent -- --help

  --agents N                number of devices (default 100), named like berlin-01-gw-01, of several platforms and agent versions
  --duration 30s            duration of the load; ms, s, m or h (default 30s)
  --warm-up 0s              load before that, whose latencies are not counted (default 0s)
  --commands-per-second N   commands queued per second for all devices together (default 10; 0 for none)
  --deployments N           apps to deploy to each device at once, before the load (default 0, at most 20); the devices simulate them
  --failing-apps PERCENT    share of these that fail: to start, in the health check, by hanging, or by a crash later (default 0)
  --failing-updates PERCENT    share of the devices whose ordered update of the agent fails (default 0); all others do what a rollout orders
  --slow-updates PERCENT       share whose update is not done when its time is over (default 0)
  --lost-after-update PERCENT  share that never comes back from it (default 0)
  --wrong-version PERCENT      share that comes back with another version (default 0)
  --seed N                  repeat a run's devices, commands and jitter (default: random)
  --json                    print one JSON object on stdout at the end; progress stays on stderr
  --quiet                   print no progress

  --url URL                 another gateway, whose rate limits apply (default: the gateway of this checkout)
  --api-key KEY             with --url: a key that may provision devices and queue commands
  --tenant ID               with --url: the key's tenant; not needed

  --poll-only PERCENT       share of agents that poll and never open a socket (default 0)
  --heartbeat SECONDS       interval of heartbeats (default: the gateway's)
  --ramp N                  connects per second at the start (default 150)
  --drain 60s               time for open commands to end after the load (default 60s)
  --help

Ctrl-C ends the load and still checks every command; a second Ctrl-C exits at once.
Exit code 0: every agent connected and every accepted command ended; none was lost, none ran twice;
with --deployments, every one is active or, with --failing-apps, has failed. 1: one of these failed. 2: the run could not start.
`;

const UNITS: ReadonlyMap<string, number> = new Map(Object.entries({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }));
const Duration = z
  .string()
  .regex(/^\d+(\.\d+)?(ms|s|m|h)?$/, "must look like 30s, 5m or 500ms")
  .transform((text) => Number.parseFloat(text) * (UNITS.get(/[a-z]+$/.exec(text)?.[0] ?? "s") ?? 1_000));
const whole = (low: number, high: number) => z.coerce.number().int().min(low).max(high);
const share = z.coerce.number().min(0).max(100).default(0);

const Options = z
  .object({
    agents: whole(1, 20_000).default(100),
    duration: Duration.default(30_000),
    "warm-up": Duration.default(0),
    "commands-per-second": z.coerce.number().min(0).max(20_000).default(10),
    deployments: whole(0, 20).default(0),
    "failing-apps": share,
    "failing-updates": share,
    "slow-updates": share,
    "lost-after-update": share,
    "wrong-version": share,
    seed: whole(0, 4_294_967_295).optional(),
    json: z.boolean().default(false),
    quiet: z.boolean().default(false),
    url: z.url({ protocol: /^https?$/ }).optional(),
    "api-key": z.string().min(1).optional(),
    tenant: z.string().min(1).optional(),
    "poll-only": share,
    heartbeat: z.coerce.number().min(1).max(600).optional(),
    ramp: whole(1, 10_000).default(150),
    drain: Duration.default(60_000),
    help: z.boolean().default(false),
  })
  .refine(
    ({ url, "api-key": key, tenant }) => (url === undefined) === (key === undefined) && (tenant === undefined || key !== undefined),
    "--url and --api-key must be given together, and --tenant with them",
  )
  .refine(
    (given) => given["failing-updates"] + given["slow-updates"] + given["lost-after-update"] + given["wrong-version"] <= 100,
    "--failing-updates, --slow-updates, --lost-after-update and --wrong-version must be 100 or less together",
  );
export type Options = z.infer<typeof Options>;

/** The message lists every problem. */
export class BadOptions extends Error {
  override readonly name = "BadOptions";
}

const text = { type: "string" } as const;
const flag = { type: "boolean" } as const;

export const parseOptions = (args: readonly string[]): Options => {
  if (args[0] === "chaos") throw new BadOptions("chaos has a command of its own: npm run chaos -- [options]");
  try {
    const { values } = parseArgs({
      args: [...args],
      strict: true,
      allowPositionals: false,
      options: {
        agents: text,
        duration: text,
        "warm-up": text,
        "commands-per-second": text,
        deployments: text,
        "failing-apps": text,
        "failing-updates": text,
        "slow-updates": text,
        "lost-after-update": text,
        "wrong-version": text,
        seed: text,
        json: flag,
        quiet: flag,
        url: text,
        "api-key": text,
        tenant: text,
        "poll-only": text,
        heartbeat: text,
        ramp: text,
        drain: text,
        help: { ...flag, short: "h" },
      },
    });
    return Options.parse(values);
  } catch (error) {
    if (error instanceof z.ZodError)
      throw new BadOptions(error.issues.map(({ path, message }) => `${path.length > 0 ? `--${path.join(".")}: ` : ""}${message}`).join("\n"));
    throw new BadOptions(error instanceof Error ? error.message : String(error));
  }
};
