// Unacknowledged commands: after their deadline or last attempt the gateway never delivers them again and reports that state.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { callWithRetry, createRandom, NoAnswer, type PairedDevice, pause, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { Command, type CommandStatus, isOpen } from "../../../protocol/index.ts";
import { readTruth } from "../check/truth.ts";
import { headersOf, inLanes, isSuccess, patience } from "../rig/calls.ts";
import { forgetfulJournal } from "../rig/forgetful.ts";
import { frameFilter } from "../rig/frames.ts";
import type { FaultProxy } from "../rig/proxy.ts";
import { type Rig, urlOf, withRig } from "../rig/rig.ts";
import { meddle, withSql } from "../rig/sql.ts";
import { type Context, hurried, type Scenario, type ScenarioOutcome } from "../scenario.ts";

/** Fewer than an agent may hold at once, so that no command waits for credit. */
const PER_DEVICE = 6;
const ATTEMPTS = 2;
const LIFE_MS = { least: 1_500, most: 4_500 };
/** Time after the last deadline: enough for the reaper and for several sessions in which a dead command could still be sent. */
const AFTERWARDS_MS = 6_000;
/** Time from the gateway's decision to the agent on a busy machine. */
const ON_THE_WAY_MS = 2_000;
const CUT_EVERY_MS = 500;
/** The backoff grows with each cut; this keeps the longest at three seconds. */
const HASTE = 100;
const REST_MS = 30_000;

interface Order {
  readonly commandId: string;
  /** By the wall clock; null if attempts limit it. */
  readonly expiresAtMs: number | null;
}

const queueOn = async (rig: Rig, { deviceId }: PairedDevice, expires: boolean, spread: number): Promise<Order> => {
  const expiresAtMs = expires ? time.wallMs() + LIFE_MS.least + spread * (LIFE_MS.most - LIFE_MS.least) : null;
  const limits = expiresAtMs === null ? { maxAttempts: ATTEMPTS } : { maxAttempts: 100, expiresAt: new Date(expiresAtMs).toISOString() };
  const headers = { ...headersOf(rig.credentials), "idempotency-key": randomUUID() };
  const body = JSON.stringify({ type: "ping", ...limits });
  const answer = await callWithRetry(() => rig.http.call({ method: "POST", path: `/v1/devices/${deviceId}/commands`, headers, body }), patience(LIFE_MS.least));
  if (!isSuccess(answer)) throw new Error(`a command was refused: ${answer.status}`);
  return { commandId: z.object({ data: Command.pick({ commandId: true }) }).parse(answer.body).data.commandId, expiresAtMs };
};

/** The end that the row must show, depending on its limit. */
const endOf = ({ expiresAtMs }: Order): { readonly status: CommandStatus; readonly codes: readonly string[] } =>
  expiresAtMs === null
    ? { status: "undeliverable", codes: ["DELIVERY_ATTEMPTS_EXCEEDED"] }
    : { status: "expired", codes: ["EXPIRED_BEFORE_DELIVERY", "EXPIRED_UNACKED"] };

/** Agents to which every delivery looks new, and whose acks never arrive. */
const muteCrew = (
  proxy: FaultProxy,
  members: readonly PairedDevice[],
  { seed, delivered }: { readonly seed: number; readonly delivered: (commandId: string) => void },
) =>
  createAgentGroup({
    url: urlOf(proxy),
    members,
    tracker: createCommandTracker(time.elapsedMs),
    time: hurried(HASTE),
    random: createRandom(seed),
    seed,
    heartbeatSec: 300,
    pollOnlyPct: 0,
    rampPerSecond: 200,
    onAlarm: () => undefined,
    tune: (_, base) => ({
      ...base,
      journal: forgetfulJournal(),
      http: { call: () => Promise.reject(new NoAnswer("this agent cannot use REST")), close: () => undefined },
      on: { ...base.on, delivered },
    }),
  });

const runDeadlines = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed }, async (rig) => {
    if (control)
      await withSql(rig.postgres, async (sql) => {
        const lenient = "new.expires_at := new.expires_at + interval '1 hour'; new.max_attempts := 100;";
        await meddle(sql, "commands", "insert", lenient);
        await meddle(sql, "command_queue", "insert", `${lenient} new.deadline_at := new.deadline_at + interval '1 hour';`);
      });
    const members = await rig.provision(Math.min(scale.agents, 60));
    const proxy = await rig.openProxy({ filter: frameFilter((direction, text) => direction === "down" || !text.includes('"op":"ack"')) });
    const deliveries = new Map<string, number[]>();
    const group = muteCrew(proxy, members, {
      seed,
      delivered: (commandId) => void deliveries.set(commandId, [...(deliveries.get(commandId) ?? []), time.wallMs()]),
    });
    const random = createRandom(seed);
    const state = { faults: 0 };
    try {
      group.start();
      await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: REST_MS });
      const orders: Order[] = [];
      const wanted = members.flatMap((member) => Array.from({ length: PER_DEVICE }, (_, n) => ({ member, expires: n % 2 === 0 })));
      await inLanes(wanted, 8, async ({ member, expires }) => void orders.push(await queueOn(rig, member, expires, random())));
      const endMs = time.elapsedMs() + LIFE_MS.most + AFTERWARDS_MS;
      while (time.elapsedMs() < endMs) {
        state.faults += proxy.reset(0.7);
        await pause(time, CUT_EVERY_MS);
      }
      const facts = new Map(
        (
          await readTruth(
            rig,
            members.map(({ deviceId }) => deviceId),
            patience(control ? 1_000 : REST_MS),
          )
        ).map((fact) => [fact.commandId, fact]),
      );
      const times = (order: Order): readonly number[] => deliveries.get(order.commandId) ?? [];
      const factOf = ({ commandId }: Order) => facts.get(commandId);
      const late = orders.filter((order) => order.expiresAtMs !== null && times(order).some((atMs) => atMs > (order.expiresAtMs ?? 0) + ON_THE_WAY_MS));
      const shown = (order: Order): boolean => factOf(order)?.status === endOf(order).status && endOf(order).codes.includes(factOf(order)?.failureCode ?? "");
      const seen = createLatency();
      for (const order of orders) if (order.expiresAtMs !== null) for (const atMs of times(order)) seen.add(order.expiresAtMs - atMs);
      return {
        n: orders.length,
        faults: state.faults,
        violations: {
          "delivered-late": late.length,
          "over-limit": orders.filter((order) => order.expiresAtMs === null && times(order).length > ATTEMPTS).length,
          "still-open": orders.filter((order) => isOpen(factOf(order)?.status ?? "queued")).length,
          "not-shown": orders.filter((order) => !isOpen(factOf(order)?.status ?? "queued") && !shown(order)).length,
        },
        latencyMs: seen.percentiles(),
        notes: [
          `n counts commands without any ack, half limited by a deadline of ${LIFE_MS.least} to ${LIFE_MS.most} ms, half by ${ATTEMPTS} attempts; ms are from a delivery to the deadline`,
          `${[...deliveries.values()].reduce((sum, each) => sum + each.length, 0)} deliveries, ${state.faults} connections cut; a delivery up to ${ON_THE_WAY_MS} ms after the deadline counts as in transit`,
        ],
      };
    } finally {
      await group.stop();
    }
  });

export const deadlineScenarios: readonly Scenario[] = [
  {
    name: "deadlines",
    promise: "R13",
    claim: "a command past its deadline or last attempt is never delivered again, even after a reconnect, and shows as expired or undeliverable",
    control: { how: "a database trigger postpones each deadline by an hour and raises the limit to 100 attempts", red: "delivered-late" },
    run: runDeadlines,
  },
];
