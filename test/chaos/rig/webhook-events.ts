// Webhooks of a rig and the events for them, written as a feature writes them: in a transaction, into the outbox.
import { randomUUID } from "node:crypto";
import { pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { headersOf, inLanes, isSuccess } from "./calls.ts";
import type { Arrival, ChaosReceiver } from "./receiver.ts";
import type { Rig } from "./rig.ts";
import type { SqlConnection } from "./sql.ts";

/** Events that only this rig emits: it has no devices. */
export const WEBHOOK_TYPES = [
  ...["device.online", "device.offline", "device.created", "device.changed"],
  ...["command.completed", "command.failed", "command.canceled", "command.expired"],
] as const;

export interface Subscribed {
  readonly path: string;
  readonly type: string;
}

export interface Sent extends Subscribed {
  readonly id: string;
  readonly subject: string;
  readonly n: number;
  readonly committedAtMs: number;
}

const LANES = 4;

/** One webhook for each path. */
export const subscribe = (rig: Rig, receiver: ChaosReceiver, webhooks: readonly Subscribed[]): Promise<void> =>
  inLanes(webhooks, LANES, async ({ path, type }) => {
    const body = JSON.stringify({ url: receiver.url(path), events: [type], maxPerSecond: 50 });
    const answer = await rig.http.call({ method: "POST", path: "/v1/webhooks", headers: headersOf(rig.credentials), body });
    if (!isSuccess(answer)) throw new Error(`no webhook: ${answer.status} ${JSON.stringify(answer.body)}`);
  });

const WRITE = `insert into outbox_events (event_id, tenant_id, type, subject_id, data)
  select id, $1, type, subject, jsonb_build_object('deviceId', subject, 'n', n) from unnest($2::text[], $3::text[], $4::text[], $5::int[]) as e(id, type, subject, n)`;

export interface Writing {
  readonly sql: SqlConnection;
  readonly tenantId: string;
  readonly types: readonly string[];
  readonly subjects: number;
  readonly count: number;
  readonly perSecond: number;
}

const TICK_MS = 100;

/** Writes the events at this pace, round all types and subjects, so that each subject's are numbered from 1. */
export const writeEvents = async ({ sql, tenantId, types, subjects, count, perSecond }: Writing): Promise<readonly Sent[]> => {
  const sent: Sent[] = [];
  const startMs = time.elapsedMs();
  while (sent.length < count) {
    const due = Math.min(count, Math.ceil(((time.elapsedMs() - startMs + TICK_MS) * perSecond) / 1_000));
    const batch = Array.from({ length: Math.max(0, due - sent.length) }, (_, index) => {
      const at = sent.length + index;
      const turn = Math.floor(at / types.length);
      const type = types[at % types.length] ?? "";
      return { id: `evt_${randomUUID()}`, type, path: "", subject: `${type} ${turn % subjects}`, n: Math.floor(turn / subjects) + 1 };
    });
    const column = (name: "id" | "type" | "subject" | "n") => batch.map((event) => event[name]);
    if (batch.length > 0) await sql.query(WRITE, [tenantId, column("id"), column("type"), column("subject"), column("n")]);
    const committedAtMs = time.elapsedMs();
    sent.push(...batch.map((event) => ({ ...event, committedAtMs })));
    await pause(time, TICK_MS);
  }
  return sent;
};

/** From the commit of each event to its first attempt, at these paths. */
export const firstAttempts = (sent: readonly Sent[], arrivals: readonly Arrival[], counts: (path: string) => boolean = () => true) => {
  const committed = new Map(sent.map(({ id, committedAtMs }) => [id, committedAtMs]));
  const latency = createLatency();
  const seen = new Set<string>();
  for (const { path, eventId, atMs } of arrivals) {
    const [atCommit, key] = [committed.get(eventId), `${path} ${eventId}`];
    if (atCommit === undefined || seen.has(key) || !counts(path)) continue;
    seen.add(key);
    latency.add(Math.max(0, atMs - atCommit));
  }
  return { ...latency.percentiles(), attempted: seen.size };
};
