// The references: frozen programs of a dozen lines each, and Mosquitto if it is installed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { plainEnv, startChild } from "../kit/net/children.ts";
import { freePort } from "../kit/net/free-port.ts";
import { pin, SERVER_CPU } from "./machine.ts";
import type { BenchStage } from "./stage.ts";

const FOLDER = join(import.meta.dirname, "reference");
const READY_MS = 20_000;
const Frozen = z.record(z.string(), z.string());

export type Reference = "echo" | "ws" | "socketio" | "http-uws" | "http-fastify" | "http-trpc" | "receiver" | "undici-loop";

export interface Peer {
  readonly pid: number;
  readonly port: number;
}

/** A reference must not drift, or the ratios mean nothing. */
const check = (file: string): string => {
  const text = readFileSync(join(FOLDER, file));
  const frozen = Frozen.parse(JSON.parse(readFileSync(join(FOLDER, "frozen.json"), "utf8")));
  const found = createHash("sha256").update(text).digest("hex");
  if (frozen[file] !== found) throw new Error(`test/bench/reference/${file} has changed; its hash is ${found}`);
  return join(FOLDER, file);
};

export const startReference = async (stage: BenchStage, name: Reference): Promise<Peer> => {
  const child = startChild({ command: process.execPath, words: [check(`${name}.mjs`)], env: { ...plainEnv(), NODE_ENV: "production" } });
  stage.add(() => child.stop());
  const said = await child.waitFor("ready at ", READY_MS);
  pin(child.pid, SERVER_CPU);
  return { pid: child.pid, port: Number(/ready at (\d+)/.exec(said)?.[1]) };
};

const BINARIES = ["mosquitto", "/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto"];

/** Starts Mosquitto, or returns null if it is not installed. */
export const startMosquitto = async (stage: BenchStage): Promise<Peer | null> => {
  const binary = BINARIES.find((name) => (name.startsWith("/") ? existsSync(name) : spawnSync(name, ["-h"]).error === undefined));
  if (binary === undefined) return null;
  const port = await freePort();
  const file = join(stage.folder, "mosquitto.conf");
  writeFileSync(
    file,
    `listener ${port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nlog_type error\nlog_type notice\nlog_type information\nuser root\n`,
  );
  const child = startChild({ command: binary, words: ["-c", file], env: plainEnv() });
  stage.add(() => child.stop());
  await child.waitFor("running", READY_MS);
  pin(child.pid, SERVER_CPU);
  return { pid: child.pid, port };
};
