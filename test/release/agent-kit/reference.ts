// The reference agent in the form in which the kit starts agents. A broken agent is this one with one port wrapped.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import {
  type AgentOptions,
  type CommandHandler,
  createAgent,
  createHttp,
  enrollDevice,
  HandlerFailure,
  InvalidPayload,
  lockState,
  noop,
  openFileJournal,
  openFileKeys,
  pairByApproval,
  pause,
  readBootId,
  StoredIdentity,
  succeedInstance,
  systemTime as time,
  toPairedDevice,
} from "../../../agent-sim/agent/index.ts";
import { openDeviceHost } from "../../../agent-sim/host/open.ts";
import { launchAgent, REACHED_GATEWAY, RESTART_CODE } from "../../../agent-sim/update/launcher.ts";
import { createUpdater } from "../../../agent-sim/update/updater.ts";
import { openVersions } from "../../../agent-sim/update/versions.ts";

/** What a broken agent wraps. */
export interface Ports {
  readonly options: (options: AgentOptions) => AgentOptions;
  readonly identityMode: number;
  readonly enroll: typeof enrollDevice;
  readonly lock: typeof lockState;
  readonly say: (text: string) => void;
  /** Runs before everything else, with the folder of the state. */
  readonly first: (state: string) => void;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);
export const RIGHT: Ports = {
  options: (options) => options,
  identityMode: 0o600,
  enroll: enrollDevice,
  lock: lockState,
  say,
  first: noop,
};

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
};

const Effect = z.object({ key: z.string(), ms: z.number().min(0).max(600_000).default(0), fail: z.boolean().default(false) });
const note = (line: string): void => {
  const file = openSync(setting("MOORING_EFFECTS"), "a");
  writeSync(file, `${line}\n`);
  fsyncSync(file);
  closeSync(file);
};
const effect: CommandHandler = {
  long: true,
  cancelable: true,
  run: async (payload, { signal, progress }) => {
    const { success, data } = Effect.safeParse(payload);
    if (!success) throw new InvalidPayload("an effect has a key");
    const { key, ms, fail } = data;
    note(`begin ${key}`);
    for (let passed = 0; passed < ms && !signal.aborted; passed += 200) {
      if (ms >= 1_000) progress(Math.floor((passed / ms) * 100), `${passed} of ${ms} ms`);
      await pause(time, Math.min(200, ms - passed), signal);
    }
    signal.throwIfAborted();
    if (fail) throw new HandlerFailure("EFFECT_FAILED", { message: "as ordered" });
    note(`end ${key}`);
    return { key };
  },
};
const Output = z.object({ bytes: z.int().min(0).max(1_000_000) });
const output: CommandHandler = { long: false, cancelable: false, run: async (payload) => ({ text: "x".repeat(Output.parse(payload).bytes) }) };

const pairInto = async (file: string, ports: Ports): Promise<void> => {
  const [url, enrollmentToken] = [setting("MOORING_URL"), process.env["MOORING_ENROLLMENT_TOKEN"]];
  const device = { url, name: "kit", fingerprint: "sha256:kit-reference" };
  const identity =
    enrollmentToken === undefined
      ? await pairByApproval({
          ...device,
          time,
          onCode: ({ code, comparison, portalUrl }) => ports.say(`approve ${code} at ${portalUrl} if it shows ${comparison}`),
        })
      : await ports.enroll({ ...device, enrollmentToken });
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(identity), { mode: ports.identityMode, flag: "wx", flush: true });
};

/** The process that starts the agent's version of the day. */
const isLauncher = (): boolean => process.env["MOORING_UPDATE_KEY"] !== undefined && process.send === undefined;

export const runReference = async (changed: Partial<Ports> = {}): Promise<void> => {
  const ports: Ports = { ...RIGHT, ...changed };
  const [state, file] = [setting("MOORING_STATE"), setting("MOORING_IDENTITY")];
  ports.first(state);
  const versions = openVersions(join(state, "agent"));
  if (isLauncher()) process.exit(await launchAgent({ versions, installed: process.argv[1] ?? "", args: process.argv.slice(2), trialMs: 10_000, time, say }));
  await ports.lock(join(state, "journal"), time);
  if (!existsSync(file)) await pairInto(file, ports);
  const stored = StoredIdentity.parse(JSON.parse(readFileSync(file, "utf8")));
  const member = toPairedDevice(stored);
  const http = createHttp(setting("MOORING_URL"), 2);
  const programs = process.env["MOORING_KIT_APP"];
  const host =
    programs === undefined ? null : openDeviceHost({ kind: "process", folder: join(state, "host"), time, seed: 1, deviceId: member.deviceId, programs, say });
  const publicKey = process.env["MOORING_UPDATE_KEY"];
  const restart = (): void => void agent.stop().then(() => process.exit(RESTART_CODE));
  const updater = publicKey === undefined ? null : createUpdater({ versions, publicKey, channel: "stable", time, random: Math.random, say, restart });
  const instances = succeedInstance(join(state, "instance"), readBootId());
  const agent = createAgent(
    ports.options({
      url: setting("MOORING_URL"),
      socketUrl: stored.connect.url,
      http,
      time,
      random: Math.random,
      deviceId: member.deviceId,
      identity: member,
      keys: openFileKeys(join(state, "keys"), member.secret),
      firstWindowMs: 0,
      signatureVersion: 2,
      journal: openFileJournal(join(state, "journal"), time.wallMs, { warn: say }),
      handlers: { "test.effect": effect, "test.output": output, ...host?.handlers, ...updater?.handlers },
      instanceId: instances.instanceId,
      formerInstanceId: instances.formerInstanceId,
      on: {
        polled: instances.polled,
        ready: () => {
          say("ready");
          process.send?.(REACHED_GATEWAY);
        },
        alarm: say,
      },
    }),
  );
  agent.start();
  host?.start(agent, 0);
  updater?.start(agent);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void agent.stop().then(() => process.exit(0)));
};
