// Commands that a node has sent and not written as sent yet: they are cancelled from every node while their owners are killed, PostgreSQL restarts, Redis is
// cut off and agents poll beside their sockets.
import { type Agent, createAgent, createHttp, createMemoryJournal, type Http, type HttpAnswer, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { isOpen } from "../../../protocol/index.ts";
import { headersOf, orNoAnswer, tally } from "../rig/calls.ts";
import { createRig, type Rig, urlOf } from "../rig/rig.ts";
import { SENT_IS_NOT_WRITTEN } from "../rig/sabotage.ts";
import { ask } from "../rig/sql.ts";
import { asking, type Context, type Scenario, type ScenarioOutcome } from "../scenario.ts";
import type { TrialOptions, TrialStage } from "../trial.ts";
import { throughProxy } from "./agents.ts";

const NODES = 3;
/** On slow lines acks arrive after the write-behind. */
const SLOW_MS = 150;
const CANCELED_SHARE = 0.5;
/** A cancellation comes within this time after its command, mostly before the write-behind. */
const CANCEL_WITHIN_MS = 120;

/** What the agents saw, in times of this machine. */
interface Seen {
  readonly begun: Map<string, { readonly deviceId: string; readonly atMs: number }>;
  /** By device: when a session began or ended. */
  readonly breaks: Map<string, number[]>;
  readonly answers: Map<string, number>;
}

/** Cancels half of the commands right after their 2xx, through any node. */
const createCanceller = (rig: Rig, { random, seen }: { readonly random: () => number; readonly seen: Seen }) => {
  const clients: readonly Http[] = rig.nodes.map((node) => createHttp(urlOf(node), 16));
  const orders: { readonly deviceId: string; readonly commandId: string }[] = [];
  const running = new Set<Promise<void>>();
  let forget: (commandId: string) => void = () => undefined;
  const cancel = async (deviceId: string, commandId: string): Promise<void> => {
    const first = Math.floor(random() * clients.length);
    // A node that is down does not answer; the next one does.
    let answer: HttpAnswer | null = null;
    for (let turn = 0; turn < clients.length && answer === null; turn += 1) {
      const http = clients[(first + turn) % clients.length];
      answer =
        http === undefined
          ? null
          : await orNoAnswer(
              http.call({ method: "POST", path: `/v1/devices/${deviceId}/commands/${commandId}/cancel`, headers: headersOf(rig.credentials), body: "{}" }),
            );
    }
    tally(seen.answers, String(answer?.status ?? "no answer"));
    const status = (answer?.body as { data?: { status?: string } } | undefined)?.data?.status;
    // Nobody waits for its ack any more.
    if (status === "canceled") await forget(commandId);
  };
  return {
    orders,
    onForget: (run: (commandId: string) => void): void => {
      forget = run;
    },
    queued: (deviceId: string, commandId: string): void => {
      if (random() >= CANCELED_SHARE) return;
      orders.push({ deviceId, commandId });
      const work = new Promise<void>((resolve) => time.after(random() * CANCEL_WITHIN_MS, resolve)).then(() => cancel(deviceId, commandId));
      running.add(work);
      void work.finally(() => running.delete(work));
    },
    close: async (): Promise<void> => {
      await Promise.all(running);
      for (const http of clients) http.close();
    },
  };
};

const trouble = async ({ rig, running, random, fault, gap, wait }: TrialStage): Promise<void> => {
  const kill = async (): Promise<void> => {
    const node = rig.nodes[Math.floor(random() * rig.nodes.length)];
    fault(`kill -9 ${node?.name}`);
    await node?.kill();
    await wait(200 + random() * 300);
    await node?.start();
  };
  const restartPostgres = async (): Promise<void> => {
    fault("kill -9 PostgreSQL");
    await rig.postgres.kill();
    const over = gap();
    await wait(200);
    over();
    await rig.postgres.start();
  };
  const cutRedis = async (): Promise<void> => {
    fault("Redis cut off");
    rig.redisProxy?.set({ hold: ["up", "down"] });
    await wait(800);
    rig.redisProxy?.calm();
  };
  await wait(700);
  for (let round = 0; running(); round += 1) {
    await ([kill, cutRedis, kill, restartPostgres][round % 4] ?? kill)();
    await wait(700 + random() * 700);
  }
};

interface Ended {
  readonly command_id: string;
  readonly status: string;
  readonly failure_code: string | null;
  readonly ended_ms: number | null;
  /** Its history says that it was sent, or that the agent was asked to cancel it. */
  readonly told: boolean;
  readonly first: string | null;
  readonly last: string | null;
  readonly ends: number;
}
const READ = `
  select c.command_id, c.status, c.failure_code, (extract(epoch from c.finished_at) * 1000)::float8 as ended_ms, c.history::jsonb @? '$[*] ? (@.to == "sent" || @.to == "canceling")' as told,
         c.history::jsonb -> 0 ->> 'to' as first, c.history::jsonb -> -1 ->> 'to' as last,
         (select count(*) from outbox_events o where o.subject_id = c.command_id and o.type like 'command.%' and o.type <> 'command.late_result')::int as ends
    from commands_now c`;

/** A command that was cancelled as one that was never sent, although an agent has begun it. */
const judgeEnds = (rows: readonly Ended[], { begun, breaks }: Seen) => {
  const violations = { "canceled-unasked": 0, "not-ended-once": 0, "history-broken": 0 };
  let excused = 0;
  for (const row of rows) {
    const isEnded = !isOpen(row.status as never);
    if (isEnded && row.ends !== 1) violations["not-ended-once"] += 1;
    if (row.first !== "queued" || row.last !== row.status) violations["history-broken"] += 1;
    const start = begun.get(row.command_id);
    if (start === undefined || row.status !== "canceled" || row.failure_code !== null || row.told || row.ended_ms === null) continue;
    const endedMs = row.ended_ms;
    // Its session broke, or its owner died, with the command in hand.
    if ((breaks.get(start.deviceId) ?? []).some((atMs) => atMs >= start.atMs - 1_000 && atMs <= endedMs + 2_000)) excused += 1;
    else violations["canceled-unasked"] += 1;
  }
  return { violations, excused };
};

const watch = (base: Parameters<NonNullable<TrialOptions["tune"]>>[1], seen: Seen) => {
  const noteBreak = (): void => void seen.breaks.set(base.deviceId, [...(seen.breaks.get(base.deviceId) ?? []), Date.now()]);
  // Socket and poller are one process: one journal, one instance id.
  return {
    ...base,
    journal: createMemoryJournal(time.wallMs),
    instanceId: base.deviceId,
    on: {
      ...base.on,
      away: (...given: Parameters<NonNullable<NonNullable<typeof base.on>["away"]>>) => {
        noteBreak();
        base.on?.away?.(...given);
      },
      executed: (commandId: string, type: string) => {
        seen.begun.set(commandId, { deviceId: base.deviceId, atMs: Date.now() });
        base.on?.executed?.(commandId, type);
      },
    },
  };
};

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const rig = await createRig({ nodes: NODES, seed, redis: true, env: { POLL_SECONDS: "2" }, ...(control ? { sabotage: SENT_IS_NOT_WRITTEN } : {}) });
  const seen: Seen = { begun: new Map(), breaks: new Map(), answers: new Map() };
  const pollers: Agent[] = [];
  const pollHttp = createHttp(urlOf(rig.agentProxy), 16);
  const canceller = createCanceller(rig, { random: Math.random, seen });
  try {
    const slow = await rig.openProxy();
    slow.set({ latencyMs: SLOW_MS });
    const short = asking(rig.portal, (command) => ({ ...command, type: "echo", requiresAck: true, payload: { text: "in hand" } }));
    const queue: Rig["portal"]["queue"] = async (command, key, retry) => {
      const queued = await short.queue(command, key, retry);
      canceller.queued(command.deviceId, queued.commandId);
      return queued;
    };
    const trial = await throughProxy({ ...rig, portal: { ...short, queue } }, slow, {
      seed,
      scale,
      impatient: control,
      uses: (index) => index % 2 === 0,
      tune: (_, base) => {
        canceller.onForget((commandId) => base.on?.forgotten?.(commandId));
        return watch(base, seen);
      },
      beside: (options) => {
        if (pollers.length >= scale.agents / 4) return;
        const poller = createAgent({ ...options, mode: "poll", http: pollHttp, firstWindowMs: 500 });
        pollers.push(poller);
        poller.start();
      },
      trouble,
    });
    const { violations, excused } = judgeEnds(await ask<Ended & Record<string, unknown>>(rig.postgres, READ), seen);
    const answers = [...seen.answers].map(([status, count]) => `${count} ${status}`).join(", ");
    return {
      ...trial,
      violations: { ...trial.violations, ...violations },
      notes: [
        ...trial.notes,
        `${canceller.orders.length} cancelled soon after their 2xx (${answers})`,
        `${excused} ran although they counted as never sent: their session or its node was lost before the write`,
      ],
    };
  } finally {
    await Promise.all(pollers.map((poller) => poller.stop()));
    await canceller.close();
    pollHttp.close();
    await rig.close();
  }
};

export const unwrittenSendScenarios: readonly Scenario[] = [
  {
    name: "in-hand",
    promise: "R1, R7, R9",
    claim: "with cancellations from every node while owners, PostgreSQL and Redis fail, no command runs twice, and none that an agent has counts as never sent",
    needsRedis: true,
    control: { how: "the database drops what nodes write as sent, so a cancellation takes what an agent has for never sent", red: "canceled-unasked" },
    run,
  },
];
