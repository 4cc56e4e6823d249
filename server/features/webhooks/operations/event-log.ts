// The log of the tenant's events, and the types that there are: for those who reconcile what they have received.
import { type contract, type EventType, type EventTypeRecord, FIRST, type TenantEvent, type TenantId, toWindow } from "../../../../protocol/index.ts";
import { exampleOf, payloadSchemaOf } from "../../../../protocol/kit/example.ts";
import { isLimited } from "../../../core/access.ts";
import { AppError } from "../../../core/errors.ts";
import type { DispatchedEvent } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import { bindingOf, readCursor, writeCursor } from "../../../core/rows/cursor.ts";
import { WALK_ROWS } from "../../../core/rows/walk.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import { bodyOf } from "../delivery/payload.ts";
import { type EventEnds, findEnds, findEvent, findEvents } from "../store/events.ts";
import { DURABLE_EVENTS, matches } from "./event-patterns.ts";

export interface EventLogDeps extends Pick<FeatureKit, "db"> {
  readonly deviceIds: (scope: SystemScope) => Promise<readonly string[]>;
}

const toRecord = ({ eventId, tenantId, sequence, type, subjectId, createdAt, data, requestId, traceparent }: DispatchedEvent): TenantEvent => ({
  eventId: eventId as TenantEvent["eventId"], // as: the columns hold nothing else
  tenantId: tenantId as TenantId,
  sequence,
  type,
  subjectId,
  at: createdAt.toISOString(),
  data: { ...data },
  requestId,
  traceparent,
});

const EXAMPLE = {
  eventId: "evt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  tenantId: "ten_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  sequence: 1_842,
  createdAt: new Date("2026-11-20T10:00:00.000Z"),
  requestId: "req_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  traceparent: null,
} as const;

const firstId = (data: Readonly<Record<string, unknown>>): string => String(Object.values(data)[0] ?? EXAMPLE.tenantId);
const describe = ({ type, summary, schema }: EventType): EventTypeRecord => {
  const data = exampleOf(schema);
  const example = JSON.parse(bodyOf({ ...EXAMPLE, type, data, subjectId: firstId(data) }, "standard")) as Record<string, unknown>; // as: a body is an object
  return { name: type, description: summary, group: type.slice(0, type.indexOf(".")), schema: payloadSchemaOf(schema), example };
};
/** Made at the first use: it takes some milliseconds. */
let described: EventTypeRecord[] = [];

/** Types that this release does not know can still be in the log. */
const typesOf = (asked: readonly string[]): readonly string[] => {
  const patterns = new Set(asked);
  return [...new Set([...asked, ...[...DURABLE_EVENTS.keys()].filter((type) => matches(patterns, type))])];
};

const dateOf = (text: string | undefined): Date | null => (text === undefined ? null : new Date(text));
const SEQUENCE = [{ kind: "number" }] as const;

/** What a page looks at, exclusive on both sides, because numbers have no gaps; and the last that it looks at, unless it is the log's last. */
const boundsOf = (start: number | null, isAscending: boolean, { lowest, highest }: EventEnds) => {
  if (isAscending) {
    const above = Math.max(start ?? 0, lowest - 1);
    const below = above + WALK_ROWS + 1;
    return { bounds: { above, below }, reached: below > highest ? undefined : below - 1 };
  }
  const below = Math.min(start ?? highest + 1, highest + 1);
  const above = Math.max(0, below - WALK_ROWS - 1);
  return { bounds: { above, below }, reached: above < lowest ? undefined : above + 1 };
};

export const createEventLog = ({ db, deviceIds }: EventLogDeps): Pick<Handlers<typeof contract.webhooks>, "eventTypes" | "listEvents" | "getEvent"> => {
  const visible = async (scope: SystemScope): Promise<readonly string[] | null> => (isLimited(scope) ? deviceIds(scope) : null);
  const find = async (scope: SystemScope, eventId: string): Promise<DispatchedEvent> => {
    const event = await findEvent(db, scope.tenantId, eventId);
    const devices = event === null ? null : await visible(scope);
    const isSeen = devices === null || devices.includes(event?.subjectId ?? "") || devices.includes(String(event?.data["deviceId"]));
    if (event === null || !isSeen) throw new AppError("EVENT_NOT_FOUND", { details: { eventId } });
    return event;
  };
  return {
    eventTypes: async () => {
      if (described.length === 0) described = [...DURABLE_EVENTS.values()].map(describe);
      return { items: described };
    },
    getEvent: async ({ scope }, { eventId }) => toRecord(await find(scope, eventId)),
    listEvents: async ({ scope }, query) => {
      const { tenantId } = scope;
      const { after, types, subjectId, since, until, cursor = FIRST } = query;
      const isAscending = after !== undefined;
      const binding = bindingOf("events", tenantId, query);
      const last = readCursor(cursor, binding, SEQUENCE);
      const start = last === null ? (after === undefined ? null : (await find(scope, after)).sequence) : Number(last[0]);
      const { limit } = toWindow(query);
      const { bounds, reached } = boundsOf(start, isAscending, await findEnds(db, tenantId));
      const filter = { types: types === undefined ? null : typesOf(types), subjectId: subjectId ?? null, since: dateOf(since), until: dateOf(until) };
      const found = await findEvents(db, { tenantId, ...bounds, ...filter, deviceIds: await visible(scope) }, { isAscending, limit: limit + 1 });
      const page = found.slice(0, limit);
      const next = found.length > limit ? page.at(-1)?.sequence : reached;
      return { items: page.map(toRecord), ...(next === undefined ? {} : { nextCursor: writeCursor(binding, [next]) }) };
    },
  };
};
