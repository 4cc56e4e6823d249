// The command line of the simulator: what may be said, what it means, and what is wrong with it.
import { parseArgs } from "node:util";
import { z } from "zod";

export const HELP = `Simulated agents against a real gateway: they connect, beat, execute commands and acknowledge them.

  npm run sim -- [options]
  npm run sim -- agent --identity FILE     one device with the identity that pairing gave; see agent --help

  --agents N                how many devices (default 100)
  --duration 30s            length of the load; ms, s, m or h (default 30s)
  --warm-up 0s              load that goes before it, whose latencies are not counted
  --commands-per-second N   commands queued per second over all devices (default 10; 0 for none)
  --seed N                  repeats the same mix of commands and the same jitter (default: random)
  --json                    one JSON object on stdout at the end; progress stays on stderr
  --quiet                   no progress

  --url URL                 a gateway elsewhere; its limits are respected (default: the gateway of this checkout)
  --api-key KEY             with --url: a key that may provision devices and queue commands
  --tenant ID               with --url: the tenant of the key

  --poll-only PERCENT       share of agents that never open a socket (default 0)
  --heartbeat SECONDS       interval of heartbeats (default: what the gateway asks for)
  --ramp N                  connects per second at the start (default 150)
  --drain 60s               how long everything may take to come to rest at the end (default 60s)
  --help

Ctrl-C ends the load and still counts everything; a second Ctrl-C leaves at once.
Exit code 0: every agent connected, every accepted command ended, none lost, none executed twice. 1: not so. 2: it could not run.
`;

const UNITS: ReadonlyMap<string, number> = new Map(Object.entries({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }));
const Duration = z
  .string()
  .regex(/^\d+(\.\d+)?(ms|s|m|h)?$/, "write it like 30s, 5m or 500ms")
  .transform((text) => Number.parseFloat(text) * (UNITS.get(/[a-z]+$/.exec(text)?.[0] ?? "s") ?? 1_000));
const whole = (low: number, high: number) => z.coerce.number().int().min(low).max(high);

const Options = z
  .object({
    agents: whole(1, 20_000).default(100),
    duration: Duration.default(30_000),
    "warm-up": Duration.default(0),
    "commands-per-second": z.coerce.number().min(0).max(20_000).default(10),
    seed: whole(0, 4_294_967_295).optional(),
    json: z.boolean().default(false),
    quiet: z.boolean().default(false),
    url: z.url({ protocol: /^https?$/ }).optional(),
    "api-key": z.string().min(1).optional(),
    tenant: z.string().min(1).optional(),
    "poll-only": z.coerce.number().min(0).max(100).default(0),
    heartbeat: z.coerce.number().min(1).max(600).optional(),
    ramp: whole(1, 10_000).default(150),
    drain: Duration.default(60_000),
    help: z.boolean().default(false),
  })
  .refine(
    ({ url, ...given }) => [url, given["api-key"], given.tenant].filter((part) => part !== undefined).length % 3 === 0,
    "--url, --api-key and --tenant belong together",
  );
export type Options = z.infer<typeof Options>;

/** Rejected with every problem at once. */
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
