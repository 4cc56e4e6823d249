// Apps: which there are, what they log, and the way to one from outside.
import type { LogBatch, LogLine, Tunnel } from "../../index.ts";
import { pause } from "../../kit/timers.ts";
import { isMooringError, type Mooring } from "../index.ts";
import { type CliCall, type CliCommand, DONE, FAILED } from "./command.ts";
import { allOf, appNamed, deviceNamed } from "./find.ts";
import { plain } from "./output.ts";
import { WrongUse } from "./refusal.ts";

const apps: CliCommand = {
  name: "apps",
  words: [],
  about: "List the apps.",
  options: { device: { value: "DEVICE", about: "Only apps on this device." }, q: { value: "TEXT", about: "Only apps whose name contains this." } },
  run: async ({ options, output, gateway }) => {
    const mooring = await gateway();
    const device = options["device"] === undefined ? {} : { deviceId: (await deviceNamed(mooring, String(options["device"]))).deviceId };
    const filters = { ...device, ...(options["q"] === undefined ? {} : { q: String(options["q"]) }) };
    const rows = await allOf((page) => mooring.apps.list.query({ ...page, ...filters }));
    output.table(rows, [
      ["NAME", ({ name }: (typeof rows)[number]) => name],
      ["ID", ({ appId }: (typeof rows)[number]) => appId],
      ["STATUS", ({ status }: (typeof rows)[number]) => status],
      ["TEMPLATE", ({ appType, templateVersion }: (typeof rows)[number]) => `${appType} ${templateVersion}`],
      ["DEVICE", ({ deviceId }: (typeof rows)[number]) => deviceId],
    ]);
    return DONE;
  },
};

const lineOf = ({ at, stream, text }: LogLine): string => `${at} ${stream === "stderr" ? "!" : " "} ${text}`;

const tailOf = (text: unknown): number => {
  const lines = Number(text ?? 200);
  if (!Number.isInteger(lines) || lines < 1 || lines > 1_000) throw new WrongUse("--lines takes a number from 1 to 1000");
  return lines;
};

const logs: CliCommand = {
  name: "logs",
  words: ["APP"],
  about: "Print the end of an app's log.",
  options: {
    follow: { short: "f", about: "Print the lines that come, until you press Ctrl-C." },
    lines: { short: "n", value: "NUMBER", about: "So many of the newest lines, at most 1000. Default: 200." },
  },
  run: async ({ words: [named = ""], options, output, gateway, signal }) => {
    const mooring = await gateway();
    const { appId } = await appNamed(mooring, named);
    const follows = options["follow"] === true;
    const tail = await mooring.apps.logs.query({ appId, tail: tailOf(options["lines"]) }).catch((error: unknown) => {
      // The lines come once the device is back.
      if (follows && isMooringError(error) && error.data?.app.code === "DEVICE_OFFLINE") return { lines: [] };
      throw error;
    });
    for (const line of tail.lines) output.item(line, lineOf(line));
    if (!follows) return DONE;
    return new Promise<number>((resolve, reject) => {
      const show = ({ lines, skipped, notice }: LogBatch): void => {
        if (skipped > 0) output.say(`${skipped} lines are missing here`);
        if (notice !== null) output.say(`no lines: ${plain(notice.replaceAll("_", " "))}`);
        for (const line of lines) output.item(line, lineOf(line));
        if (notice === "not_installed") resolve(FAILED);
      };
      const subscription = mooring.apps.followLogs.subscribe({ appId }, { onData: ({ data }) => show(data), onError: reject, onComplete: () => resolve(DONE) });
      signal.addEventListener("abort", () => {
        subscription.unsubscribe();
        resolve(DONE);
      });
    });
  },
};

const OPENS_WITHIN_MS = 60_000;
const LOOK_MS = 1_000;

const opened = async (mooring: Mooring, { tunnelId }: Pick<Tunnel, "tunnelId">, { time, signal }: Pick<CliCall, "time" | "signal">): Promise<Tunnel> => {
  const untilMs = time.elapsedMs() + OPENS_WITHIN_MS;
  for (;;) {
    const tunnel = await mooring.tunnels.get.query({ tunnelId });
    if (tunnel.status !== "pending" || time.elapsedMs() > untilMs || signal.aborted) return tunnel;
    await pause(time, LOOK_MS, signal);
  }
};

const portOf = (text: unknown): number => {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new WrongUse("--port takes a number from 1 to 65535");
  return port;
};

const open: CliCommand = {
  name: "open",
  words: ["APP"],
  about: "Print the address of an app from outside. Makes a private tunnel if it has none: members sign in, scripts send the header x-mooring-key.",
  options: { port: { value: "PORT", about: "Which port of the app. Default: its first." } },
  run: async ({ words: [named = ""], options, output, gateway, time, signal }) => {
    const targetPort = options["port"] === undefined ? {} : { targetPort: portOf(options["port"]) };
    const mooring = await gateway();
    const { appId, deviceId, name } = await appNamed(mooring, named);
    const present = await allOf((page) => mooring.tunnels.list.query({ ...page, appId }));
    const fits = present.find((each) => each.status !== "stopped" && (targetPort.targetPort === undefined || each.targetPort === targetPort.targetPort));
    const made = fits ?? (await mooring.tunnels.create.mutate({ deviceId, appId, name, ...targetPort }));
    const tunnel = await opened(mooring, made, { time, signal });
    output.answer(tunnel, () => [tunnel.url, ...(tunnel.failure === null ? [] : [`${tunnel.failure.reason}: ${tunnel.failure.message}`])]);
    if (tunnel.status === "pending") output.say("the device has not reached the app yet");
    return tunnel.status === "active" ? DONE : FAILED;
  },
};

export const APPS = [apps, logs, open];
