// The signed REST calls that the kit's gateway answers: polls and acks, the desired and the reported state, secrets, logs and updates.
import { z } from "zod";
import { SocketAck } from "../../channel/agent.ts";
import { ReportedApp } from "../../records/apps/app-spec.ts";
import { type BrokenRule, shown } from "../verdict.ts";
import type { Conduct } from "./conduct.ts";
import type { OrderBook } from "./order-book.ts";
import { accept, type HeardCall, headerOf, jsonObject, type KitReply, refuseCall } from "./reply.ts";
import type { KitIdentity } from "./signature-check.ts";

export interface HeardReport {
  readonly version: number;
  readonly apps: readonly z.infer<typeof ReportedApp>[];
  readonly tunnels: readonly Readonly<Record<string, unknown>>[];
  readonly atMs: number;
}

/** What the device should be, and what the agent told of it. */
export interface DeviceState {
  desired: { version: number; apps: unknown[]; tunnels: unknown[] };
  /** The secrets of apps by the app's id. */
  secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The secret that a rotation gives out. */
  nextSecret: string | null;
  ignored: readonly string[];
  /** Whether somebody still watches the logs. */
  watched: boolean;
  readonly reports: HeardReport[];
  /** Chunks of logs as they came. */
  readonly logs: { readonly head: Readonly<Record<string, unknown>>; readonly lines: readonly string[]; readonly atMs: number }[];
  readonly events: unknown[];
}

export interface KitCallsDeps {
  readonly identity: KitIdentity;
  readonly url: () => string;
  readonly conduct: Conduct;
  readonly book: OrderBook;
  readonly state: DeviceState;
  readonly nowMs: () => number;
  readonly fault: (finding: BrokenRule) => void;
}

const Report = z.object({ version: z.int(), apps: z.array(z.unknown()), tunnels: z.array(z.record(z.string(), z.unknown())).default([]) });
const POLL_ATTEMPT = -1;

export const answerAgentCalls = ({ identity, url, conduct, book, state, nowMs, fault }: KitCallsDeps): ((call: HeardCall) => KitReply) => {
  const own = `/v1/devices/${identity.deviceId}`;
  const cancels = (): readonly string[] =>
    [...book.orders.values()].filter((order) => order.cancelRequested && order.final === null).map(({ commandId }) => commandId);
  const stateTag = (): string => `"${state.desired.version}"`;

  const poll = (call: HeardCall): KitReply => {
    const limit = Number(new URLSearchParams(call.query).get("limit") ?? 10);
    book.sendAgain();
    const due = conduct.pushes ? book.due(32).slice(0, limit) : [];
    for (const order of due) {
      order.attempts += 1;
      order.sentIn = POLL_ATTEMPT;
    }
    const data = due.map((order) => {
      const { command, delivery } = book.frameOf(order) as { command: object; delivery: object };
      return { ...command, delivery };
    });
    return accept(data, { headers: { "x-svc-poll-interval": String(conduct.pollSeconds) }, beside: { cancel: cancels() } });
  };
  const ack = (call: HeardCall, commandId: string): KitReply => {
    const parsed = SocketAck.safeParse({ ...call.json, commandId });
    if (!parsed.success) {
      fault({ rule: "R15.1", due: "the data of an ack", seen: shown(call.body) });
      return refuseCall(400, "VALIDATION_FAILED", { details: { issues: [{ path: "status", message: "invalid" }] } });
    }
    if (!book.orders.has(commandId)) return refuseCall(404, "COMMAND_NOT_FOUND");
    return accept(book.take(parsed.data, call.atMs, null));
  };
  const report = (call: HeardCall): KitReply => {
    const parsed = Report.safeParse(call.json);
    if (!parsed.success) {
      fault({ rule: "A5.5", due: "a report of version and apps", seen: shown(call.body) });
      return refuseCall(400, "VALIDATION_FAILED");
    }
    const apps = parsed.data.apps.map((app) => ReportedApp.safeParse(app));
    for (const { error } of apps)
      if (error !== undefined) fault({ rule: "A5.5", due: "an app of the documents in the report", seen: shown(z.prettifyError(error)) });
    state.reports.push({ version: parsed.data.version, apps: apps.flatMap(({ data }) => data ?? []), tunnels: parsed.data.tunnels, atMs: call.atMs });
    return accept({ desiredVersion: state.desired.version, ignored: state.ignored, unusable: [], refused: [] });
  };
  const desired = (call: HeardCall): KitReply => {
    if (headerOf(call, "if-none-match") === stateTag()) return { ...accept(null), status: 304, text: "" };
    return accept(
      {
        version: state.desired.version,
        hash: "9b2f8f2f0d7c4b1e9b2f8f2f0d7c4b1e",
        apps: state.desired.apps,
        tunnels: state.desired.tunnels,
        carrier: { url: `${url()}/v1/agent/tunnel` },
        mesh: { url: `${url()}/v1/agent/mesh`, routes: [] },
      },
      { headers: { etag: stateTag() } },
    );
  };
  const logs = (call: HeardCall): KitReply => {
    const [first = "", ...lines] = call.body.split("\n").filter((line) => line !== "");
    state.logs.push({ head: jsonObject(first) ?? {}, lines, atMs: call.atMs });
    return accept({ watched: state.watched });
  };
  const secrets = (): KitReply => (state.nextSecret === null ? refuseCall(404, "NOT_FOUND") : accept({ secrets: { DEVICE_TOKEN: state.nextSecret } }));
  const me = (): KitReply =>
    accept({
      ...identity,
      deploymentId: null,
      serverTime: new Date(nowMs()).toISOString(),
      limits: { requestsPerMinute: 100, heartbeatsPerMinute: 60, maxOutputBytes: 65_536 },
    });

  const fixed: ReadonlyMap<string, (call: HeardCall) => KitReply> = new Map([
    ["GET /v1/agent/me", me],
    [
      "GET /v1/agent/config",
      () => accept({ heartbeatSeconds: 1, pollSeconds: conduct.pollSeconds, socketUrl: `${url().replace(/^http/, "ws")}/v1/agent/connect` }),
    ],
    [`GET ${own}/commands`, poll],
    [`POST ${own}/heartbeat`, () => accept({ nextHeartbeatSeconds: 1, pendingCommands: 0, cancel: cancels() })],
    [`GET ${own}/secrets`, secrets],
    ["GET /v1/agent/desired-state", desired],
    ["PUT /v1/agent/reported-state", report],
    ["PUT /v1/agent/inventory", () => accept({ changed: false })],
    ["POST /v1/agent/logs", logs],
    [
      "POST /v1/agent/events",
      (call) => {
        state.events.push(call.json);
        return accept({ accepted: 1 });
      },
    ],
  ]);
  return (call) => {
    const found = fixed.get(`${call.method} ${call.path}`);
    if (found !== undefined) return found(call);
    const [, commandId] = new RegExp(`^${own}/commands/([^/]+)/ack$`).exec(call.path) ?? [];
    if (commandId !== undefined && call.method === "POST") return ack(call, decodeURIComponent(commandId));
    const [, appId] = /^\/v1\/apps\/([^/]+)\/secrets$/.exec(call.path) ?? [];
    if (appId !== undefined) return accept(state.secrets[appId] ?? {});
    if (/^\/v1\/devices\/[^/]+\//.test(call.path) && !call.path.startsWith(`${own}/`)) {
      fault({ rule: "R15.2", due: "paths that name the agent's own device", seen: call.path });
      return refuseCall(403, "FORBIDDEN", { details: { reason: "not_own_device" } });
    }
    return refuseCall(404, "NOT_FOUND");
  };
};
