// The reference agent as a process that kills itself at a named point of a command's life. Only the scenario of agent deaths runs it.
import { appendFileSync, readFileSync } from "node:fs";
import { z } from "zod";
import { createAgent, createApps, createHandlers, createHttp, type Journal, openFileJournal, systemTime } from "../../../agent-sim/agent/index.ts";
import { hurried } from "../scenario.ts";

export const POINTS = ["before-journal", "after-journal", "before-result", "after-result"] as const;
const Orders = z.object({
  url: z.string(),
  member: z.object({ deviceId: z.string(), agentId: z.string(), tenantId: z.string(), secret: z.string(), fingerprint: z.string() }),
  journal: z.string(),
  /** One line for each command that really began. */
  effects: z.string(),
  point: z.enum(POINTS).nullable(),
  /** Dies when it reaches the point for the n-th time. */
  at: z.number(),
  haste: z.number(),
});
export type Orders = z.infer<typeof Orders>;

const orders = Orders.parse(JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")));
let passed = 0;
const pass = (point: (typeof POINTS)[number]): void => {
  if (point !== orders.point) return;
  passed += 1;
  if (passed >= orders.at) process.kill(process.pid, "SIGKILL");
};

const kept = openFileJournal(orders.journal, systemTime.wallMs);
const journal: Journal = {
  ...kept,
  begin: (id, requiresAck) => {
    pass("before-journal");
    const isNew = kept.begin(id, requiresAck);
    pass("after-journal");
    return isNew;
  },
  finish: (id, result) => {
    pass("before-result");
    const word = kept.finish(id, result);
    pass("after-result");
    return word;
  },
};
const time = hurried(orders.haste);
const agent = createAgent({
  url: orders.url,
  http: createHttp(orders.url, 2),
  time,
  random: Math.random,
  deviceId: orders.member.deviceId,
  identity: orders.member,
  fingerprint: orders.member.fingerprint,
  firstWindowMs: 100,
  journal,
  handlers: createHandlers({ apps: createApps({ time, random: Math.random }), time }),
  on: { executed: (commandId) => appendFileSync(orders.effects, `${commandId}\n`) },
});
agent.start();
process.once("SIGTERM", () => void agent.stop().then(() => process.exit(0)));
