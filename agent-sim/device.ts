// `npm run sim -- agent`: the reference agent as one device, with the identity that pairing gave it. Says what it does, line by line.
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { z } from "zod";
import {
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  Identity,
  LONGEST_WAIT_MS,
  lockState,
  type Member,
  openFileJournal,
  openFileKeys,
  readBootId,
  systemTime as time,
  toMember,
} from "./agent/index.ts";

export const DEVICE_HELP = `One device, run by the reference agent.

  npm run sim -- agent --identity FILE [--seconds N] [--signature 2] [--url URL]

  --identity FILE   the answer of POST /v1/pairing/activate or auto-activate, as it came
  --seconds N       a trial: connect at once, and end by itself (default: until Ctrl-C)
  --signature 2     sign by the second form (default: 1)
  --url URL         the gateway (default: API_URL of the identity, else http://127.0.0.1:8080)

Its journal lies beside the identity (FILE.journal): a command is never run twice, also over restarts. One process at a time may use it.
`;

const POLL_SOCKETS = 2;
const Answer = z.union([z.object({ data: Identity }).transform(({ data }) => data), Identity]);

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
  const identity = Answer.parse(JSON.parse(await readFile(values.identity, "utf8")));
  const unlock = lockState(values.identity);
  try {
    return await live(toMember(identity), {
      identity,
      path: values.identity,
      url: values.url,
      signatureVersion: values.signature === "2" ? 2 : 1,
      seconds: values.seconds,
    });
  } finally {
    unlock();
  }
};

interface Start {
  readonly identity: z.infer<typeof Identity>;
  /** Journal and keys lie beside it. */
  readonly path: string;
  readonly url: string | undefined;
  readonly signatureVersion: 1 | 2;
  readonly seconds: string | undefined;
}

const live = async (member: Member, { identity, path, url: given, signatureVersion, seconds }: Start): Promise<number> => {
  const { connect, infrastructure_secrets: secrets } = identity;
  const url = given ?? secrets["API_URL"] ?? "http://127.0.0.1:8080";
  const http = createHttp(url, POLL_SOCKETS);
  const agent = createAgent({
    url,
    http,
    time,
    random: Math.random,
    bootId: readBootId(),
    deviceId: member.deviceId,
    identity: member,
    // An address that was given by hand is that of the whole gateway.
    socketUrl: given === undefined ? connect.url : undefined,
    keys: openFileKeys(`${path}.keys`, member.secret),
    fingerprint: member.fingerprint,
    heartbeatSec: null,
    mode: "socket",
    signatureVersion,
    firstWindowMs: seconds === undefined ? Math.min(LONGEST_WAIT_MS, connect.coldStartMs ?? 0) : 0,
    journal: openFileJournal(`${path}.journal`, time.wallMs),
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
    if (seconds !== undefined) setTimeout(resolve, Number(seconds) * 1_000);
  });
  await agent.stop();
  http.close();
  say("stopped");
  return 0;
};
