// The gateway's final state: every command of every device, read through the public API.
import { callWithRetry, pause, type RetryOptions, refusal } from "../../../agent-sim/agent/index.ts";
import { pageOf } from "../../../agent-sim/fleet/page.ts";
import { Command, isOpen } from "../../../protocol/index.ts";
import type { Rig } from "../rig/rig.ts";
import type { Fact } from "./checker.ts";

const PAGE = 100;
const MAX_PAGES = 500;
const WORKERS = 6;
const AGAIN_MS = 500;

const Listed = pageOf(Command.pick({ commandId: true, deviceId: true, status: true, failureCode: true, payload: true }));

type Reader = Pick<Rig, "http" | "credentials">;

const readDevice = async ({ http, credentials }: Reader, deviceId: string, patience: RetryOptions): Promise<readonly Fact[]> => {
  const facts: Fact[] = [];
  const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId };
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const path = `/v1/devices/${deviceId}/commands?page=${page}&pageSize=${PAGE}`;
    const answer = await callWithRetry(() => http.call({ method: "GET", path, headers }), patience);
    if (answer.status !== 200) throw refusal("the gateway refused to list commands", answer);
    const { data, meta } = Listed.parse(answer.body);
    for (const { payload, ...fact } of data) facts.push({ ...fact, request: typeof payload["request"] === "string" ? payload["request"] : null });
    if (!meta.pagination.hasMore) break;
  }
  return facts;
};

/** Reads until every command has ended or the patience is over; returns commands that are still open as they are. */
export const readTruth = async (reader: Reader, deviceIds: readonly string[], patience: RetryOptions): Promise<readonly Fact[]> => {
  const known = new Map<string, readonly Fact[]>();
  for (;;) {
    const open = deviceIds.filter((id) => known.get(id)?.every(({ status }) => !isOpen(status)) !== true);
    const work = async (): Promise<void> => {
      for (let id = open.shift(); id !== undefined; id = open.shift()) known.set(id, await readDevice(reader, id, patience));
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    const facts = [...known.values()].flat();
    if (facts.every(({ status }) => !isOpen(status)) || patience.time.elapsedMs() + AGAIN_MS >= patience.untilMs) return facts;
    await pause(patience.time, AGAIN_MS);
  }
};
