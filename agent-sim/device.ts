// `npm run sim -- agent`: the reference agent as one device, with the identity that pairing gave it. Says what it does, line by line.
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { PairingActivateResponse } from "../protocol/index.ts";
import { createAgent } from "./agent.ts";
import { createApps } from "./apps.ts";
import { readBootId } from "./crew.ts";
import { createHandlers } from "./handlers.ts";
import { createHttp } from "./http.ts";
import { openFileJournal } from "./journal-file.ts";
import { openFileKeys } from "./keys.ts";
import { toMember } from "./portal.ts";
import { systemTime as time } from "./time.ts";

export const DEVICE_HELP = `One device, run by the reference agent.

  npm run sim -- agent --identity FILE [--seconds N] [--signature 2] [--url URL]

  --identity FILE   the answer of POST /v1/pairing/activate or auto-activate, as it came
  --seconds N       end by itself (default: until Ctrl-C)
  --signature 2     sign by the second form (default: 1)
  --url URL         the gateway (default: API_URL of the identity, else http://127.0.0.1:8080)

Its journal lies beside the identity (FILE.journal): a command is never run twice, also over restarts.
`;

const POLL_SOCKETS = 2;
const Identity = z.union([z.object({ data: PairingActivateResponse }).transform(({ data }) => data), PairingActivateResponse]);

const say = (text: string): void => void process.stdout.write(`${new Date(time.wallMs()).toISOString()} ${text}\n`);

/** Resolves when the device has stopped. */
export const runDevice = async (args: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      identity: { type: "string" },
      seconds: { type: "string" },
      url: { type: "string" },
      signature: { type: "string", default: "1" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help || values.identity === undefined) {
    process.stdout.write(DEVICE_HELP);
    return values.help ? 0 : 2;
  }
  const identity = Identity.parse(JSON.parse(await readFile(values.identity, "utf8")));
  const member = toMember(identity);
  const url = values.url ?? identity.infrastructure_secrets?.["API_URL"] ?? "http://127.0.0.1:8080";
  const http = createHttp(url, POLL_SOCKETS);
  const agent = createAgent({
    url,
    http,
    time,
    random: Math.random,
    bootId: readBootId(),
    deviceId: member.deviceId,
    identity: member,
    keys: openFileKeys(`${values.identity}.keys`, member.secret),
    fingerprint: member.fingerprint,
    heartbeatSec: null,
    mode: "socket",
    signatureVersion: values.signature === "2" ? 2 : 1,
    firstWindowMs: 0,
    journal: openFileJournal(join(dirname(values.identity), `${values.identity.split("/").at(-1) ?? "device"}.journal`), time.wallMs),
    handlers: createHandlers({ apps: createApps({ time, random: Math.random }), time }),
    on: {
      ready: () => say(`connected to ${url} as ${member.deviceId}`),
      executed: (commandId, type) => say(`executes ${type} ${commandId}`),
      settled: ({ commandId, status, result }) => say(`acknowledged ${commandId}: ${status ?? "?"} (${result})`),
      alarm: say,
    },
  });
  agent.start();
  await new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
    if (values.seconds !== undefined) setTimeout(resolve, Number(values.seconds) * 1_000);
  });
  await agent.stop();
  http.close();
  say("stopped");
  return 0;
};
