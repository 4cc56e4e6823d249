// Devices, and commands for them.
import type { DeviceStatus, Command as Queued } from "../../index.ts";
import { type CliCommand, DONE, FAILED } from "./command.ts";
import { allOf, deviceNamed } from "./find.ts";
import { WrongUse } from "./refusal.ts";

/** The gateway waits so long within one call. */
const CALL_WAIT_SECONDS = 30;
const DEFAULT_WAIT_SECONDS = 120;

const devices: CliCommand = {
  name: "devices",
  words: [],
  about: "List the devices.",
  options: {
    status: { value: "STATUS", about: "Only devices with this status, such as online." },
    tag: { value: "TAG", about: "Only devices with this tag." },
    q: { value: "TEXT", about: "Only devices whose name, hostname or id contains this." },
  },
  run: async ({ options, output, gateway }) => {
    const mooring = await gateway();
    const filters = {
      ...(options["status"] === undefined ? {} : { status: options["status"] as DeviceStatus }), // as: the gateway refuses others
      ...(options["tag"] === undefined ? {} : { tag: [String(options["tag"])] }),
      ...(options["q"] === undefined ? {} : { q: String(options["q"]) }),
    };
    const rows = await allOf((page) => mooring.devices.list.query({ ...page, ...filters }));
    output.table(rows, [
      ["NAME", ({ name, hostname }: (typeof rows)[number]) => name ?? hostname ?? "-"],
      ["ID", ({ deviceId }: (typeof rows)[number]) => deviceId],
      ["STATUS", ({ status }: (typeof rows)[number]) => status],
      ["LAST SEEN", ({ lastSeen }: (typeof rows)[number]) => lastSeen ?? "never"],
      ["AGENT", ({ agentVersion }: (typeof rows)[number]) => agentVersion ?? "-"],
      ["TAGS", ({ tags }: (typeof rows)[number]) => tags.join(" ")],
    ]);
    return DONE;
  },
};

const payloadOf = (text: string): Record<string, unknown> => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new WrongUse(`the payload is no JSON: ${text}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WrongUse("the payload must be a JSON object");
  return value as Record<string, unknown>;
};

const secondsOf = (text: unknown): number => {
  const seconds = Number(text);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 86_400) throw new WrongUse("--wait-seconds takes a number from 1 to 86400");
  return seconds;
};

type Shown = Pick<Queued, "commandId" | "type" | "status" | "failureCode"> & { readonly ack: { readonly output?: unknown } | null };
const linesOf = ({ commandId, type, status, failureCode, ack }: Shown): string[] => [
  `${commandId} ${type} ${status}${failureCode === null ? "" : ` (${failureCode})`}`,
  ...(ack?.output == null ? [] : JSON.stringify(ack.output, null, 2).split("\n")),
];

const run: CliCommand = {
  name: "run",
  words: ["DEVICE", "TYPE", "[PAYLOAD]"],
  about: "Queue a command for a device. PAYLOAD is a JSON object.",
  options: {
    wait: { about: `Wait until it has ended, and exit with 1 unless it succeeded; at most ${DEFAULT_WAIT_SECONDS} seconds.` },
    "wait-seconds": { value: "SECONDS", about: "Wait for longer, or for less." },
  },
  run: async ({ words: [named = "", type = "", payload = "{}"], options, output, gateway, time }) => {
    const waitSeconds = options["wait-seconds"] === undefined ? (options["wait"] === true ? DEFAULT_WAIT_SECONDS : 0) : secondsOf(options["wait-seconds"]);
    const mooring = await gateway();
    const { deviceId } = await deviceNamed(mooring, named);
    const untilMs = time.elapsedMs() + 1_000 * waitSeconds;
    const order = { deviceId, type, payload: payloadOf(payload), idempotencyKey: crypto.randomUUID() };
    // The key makes each repetition wait for the first one's command.
    for (;;) {
      const wait = Math.min(CALL_WAIT_SECONDS, Math.ceil((untilMs - time.elapsedMs()) / 1_000));
      const command = await mooring.commands.queue.mutate(wait > 0 ? { ...order, wait } : order);
      const isOpen = command.finishedAt === null;
      if (isOpen && time.elapsedMs() < untilMs) continue;
      output.answer(command, () => linesOf(command));
      if (waitSeconds === 0) return DONE;
      if (isOpen) output.say(`it has not ended within ${waitSeconds} seconds; it goes on`);
      return command.status === "succeeded" || command.status === "delivered" ? DONE : FAILED;
    }
  },
};

export const DEVICES = [devices, run];
