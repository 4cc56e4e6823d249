// The reference agent's part of a secret rotation, as a process that kills itself at a named point. Only the rotation scenario runs it.
import { readFileSync } from "node:fs";
import { createHttp, createMemoryKeys, createRotation, type Keys, openFileKeys, signer, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { RotationOrders, type RotationPoint } from "./rotation-points.ts";

const WITHIN_MS = 30_000;

const { url, member, keys: path, point } = RotationOrders.parse(JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")));
const pass = (here: RotationPoint): void => {
  if (here === point) process.kill(process.pid, "SIGKILL");
};
const kept = path === null ? createMemoryKeys(member.secret) : openFileKeys(path, member.secret);
const keys: Keys = {
  get secret() {
    return kept.secret;
  },
  get rotating() {
    return kept.rotating;
  },
  begin: kept.begin,
  offer: (secret) => {
    pass("before-keeping");
    kept.offer(secret);
    pass("after-keeping");
  },
  confirmed: (secret) => {
    // The fetch confirms the old secret; only the new one is a step of the rotation.
    if (secret === member.secret) return kept.confirmed(secret);
    pass("before-confirming");
    kept.confirmed(secret);
    pass("after-confirming");
  },
  refused: kept.refused,
};
let lastMs = 0;
const stampMs = (): number => {
  lastMs = Math.max(lastMs + 1, time.wallMs());
  return lastMs;
};
const rotation = createRotation({
  keys,
  http: createHttp(url, 2),
  deviceId: member.deviceId,
  identity: member,
  sign: signer(1),
  time,
  random: Math.random,
  stampMs,
});
if (keys.rotating) {
  const stop = rotation.resume();
  await until(time, () => !keys.rotating, { everyMs: 20, withinMs: WITHIN_MS });
  stop();
} else if (keys.secret === member.secret)
  await rotation.handler.run({}, { commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined, traceparent: null });
process.exit(0);
