// Two outcomes for one command are reported on two nodes at once while nodes are killed: the first one stands, and every answer is true.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  callWithRetry,
  createHttp,
  createRandom,
  type Http,
  type HttpAnswer,
  type PairedDevice,
  pause,
  type Random,
  type RetryOptions,
  signer,
  systemTime as time,
} from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { AckResult, type CommandStatus } from "../../../protocol/index.ts";
import { readTruth } from "../check/truth.ts";
import { createRig, type Rig, urlOf } from "../rig/rig.ts";
import { SUCCESS_IS_FORGOTTEN } from "../rig/sabotage.ts";
import { ask } from "../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const NODES = 2;
const DEVICES = 8;
const MOST_PAIRS = 1_000;
/** Races of one device that run side by side. */
const LANES = 3;
const PATIENCE_MS = 40_000;
const sign = signer(1);

type Word = "succeeded" | "failed";
interface Said {
  readonly word: Word;
  /** Null if no answer came in time. */
  readonly result: AckResult["result"] | null;
}
interface Race {
  readonly commandId: string;
  readonly said: readonly Said[];
}

const Answer = z.object({ data: AckResult });
const patience = (): RetryOptions => ({ time, random: Math.random, untilMs: time.elapsedMs() + PATIENCE_MS });

/** Never returns the same time twice, so that no request looks like a replay of another. */
const createClock = () => {
  let lastMs = 0;
  return (): Date => {
    lastMs = Math.max(time.wallMs(), lastMs + 1);
    return new Date(lastMs);
  };
};

const tell = async (http: Http, member: PairedDevice, { commandId, word, now }: { commandId: string; word: Word; now: () => Date }): Promise<Said> => {
  const target = `/v1/devices/${member.deviceId}/commands/${commandId}/ack`;
  const body = JSON.stringify({ status: word, output: { said: randomUUID() } });
  const call = (): Promise<HttpAnswer> => http.call({ method: "POST", path: target, body, headers: sign(member, { method: "POST", target, body }, now()) });
  const answer = await callWithRetry(call, patience()).catch(() => null);
  return { word, result: Answer.safeParse(answer?.body).data?.data.result ?? null };
};

const wins = ({ result }: Said): boolean => result === "applied" || result === "duplicate";

/** The violations of one race, given how the command ended. */
const judgeRace = ({ said }: Race, ended: CommandStatus | undefined): readonly string[] => [
  ...(said.some(({ result }) => result === null || result === "unknown") ? ["unanswered"] : []),
  ...(said.some((each) => wins(each) && each.word !== ended) ? ["ack-lost"] : []),
  ...(said.some(({ word, result }) => result === "conflict" && word === ended) ? ["wrong-conflict"] : []),
  ...(said.every(({ result }) => result === "conflict") ? ["no-winner"] : []),
];

const killNowAndThen = async (rig: Rig, { random, over }: { random: Random; over: () => boolean }): Promise<number> => {
  let kills = 0;
  for (await pause(time, 700); !over(); await pause(time, 2_000 + random() * 1_000)) {
    const node = rig.nodes[Math.floor(random() * rig.nodes.length)];
    await node?.kill();
    await node?.start();
    kills += 1;
  }
  return kills;
};

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const rig = await createRig({ nodes: NODES, seed, sabotage: control ? SUCCESS_IS_FORGOTTEN : undefined });
  const clients = rig.nodes.map((node) => createHttp(urlOf(node), DEVICES * 2));
  const [random, latency, now] = [createRandom(seed), createLatency(), createClock()];
  const races: Race[] = [];
  let started = 0;
  const endMs = time.elapsedMs() + scale.seconds * 1_000;
  const over = (): boolean => time.elapsedMs() >= endMs || races.length >= MOST_PAIRS;
  const race = async (member: PairedDevice): Promise<void> => {
    while (!over()) {
      const number = started;
      started += 1;
      const command = { deviceId: member.deviceId, type: "ping", payload: {}, requiresAck: true };
      const { commandId } = await rig.portal.queue(command, randomUUID(), { ...patience(), onAttempt: () => undefined });
      const startMs = time.elapsedMs();
      const words: readonly Word[] = number % 2 === 0 ? ["succeeded", "succeeded"] : random() < 0.5 ? ["succeeded", "failed"] : ["failed", "succeeded"];
      const said = await Promise.all(clients.map((http, n) => tell(http, member, { commandId, word: words[n] ?? "failed", now })));
      latency.add(time.elapsedMs() - startMs);
      races.push({ commandId, said });
    }
  };
  try {
    const members = await rig.provision(DEVICES);
    const killing = killNowAndThen(rig, { random, over });
    await Promise.all(members.flatMap((member) => Array.from({ length: LANES }, () => race(member))));
    const kills = await killing;
    const truth = await readTruth(
      rig,
      members.map(({ deviceId }) => deviceId),
      { ...patience(), untilMs: time.elapsedMs() + 5_000 },
    );
    const ends = new Map(truth.map(({ commandId, status }) => [commandId, status]));
    const violations: Record<string, number> = { unanswered: 0, "ack-lost": 0, "wrong-conflict": 0, "no-winner": 0 };
    for (const each of races) for (const wrong of judgeRace(each, ends.get(each.commandId))) violations[wrong] = (violations[wrong] ?? 0) + 1;
    const twice = await ask(
      rig.postgres,
      `select command_id from commands_now cross join lateral json_array_elements(history) as step where step->>'to' in ('succeeded', 'failed')
        group by command_id having count(*) > 1`,
    );
    const conflicts = races.filter(({ said }) => said.some(({ result }) => result === "conflict")).length;
    return {
      n: races.length,
      faults: kills,
      violations: { ...violations, "ended-twice": twice.length },
      latencyMs: latency.percentiles(),
      notes: [`${races.length} pairs of outcomes, ${conflicts} of them learned that the other came first; ms are of a pair`],
    };
  } finally {
    for (const client of clients) client.close();
    await rig.close();
  }
};

export const raceScenarios: readonly Scenario[] = [
  {
    name: "ack-race",
    promise: "R9",
    claim: "when the same or contrary outcomes reach two nodes at once, across kill -9, the first stands, the other learns so, and no answered one is lost",
    control: { how: "a success is answered but not stored", red: "ack-lost" },
    run,
  },
];
