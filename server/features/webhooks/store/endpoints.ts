// Rows of webhooks, as people see and change them.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { type Page, Webhook } from "../../../../protocol/index.ts";
import { secondsFromNow } from "../../../core/clock.ts";
import type { Clients } from "../../../core/database.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { FAILING_AFTER } from "../delivery/retry-schedule.ts";

const include = { endpoint: true } as const;
const existing = { deletedAt: null } as const;
export type DeliveryRow = Prisma.WebhookDeliveryModel;
export type WebhookRow = Prisma.Result<Prisma.WebhookDelegate, { include: typeof include }, "findFirstOrThrow">;
interface Counts {
  readonly success24h: number;
  readonly failure24h: number;
}
const NONE: Counts = { success24h: 0, failure24h: 0 };

const HOURS = 24;
/** Attempts of the last 24 hours of each webhook. */
const countAttempts = async (db: Clients, scope: SystemScope, webhookIds: readonly string[], now: Date): Promise<ReadonlyMap<string, Counts>> => {
  const where = { webhookId: { in: [...webhookIds] }, hour: { gt: secondsFromNow(-HOURS * 3_600, now) } };
  const groups = await db.for(scope).webhookHour.groupBy({ by: ["webhookId"], where, _sum: { succeeded: true, failed: true } });
  return new Map(groups.map(({ webhookId, _sum }) => [webhookId, { success24h: _sum.succeeded ?? 0, failure24h: _sum.failed ?? 0 }]));
};

const toWebhook = (row: WebhookRow, counts: Counts): Webhook => {
  const { endpoint, status } = row;
  const isFailing = status === "active" && (endpoint?.consecutiveFailures ?? 0) >= FAILING_AFTER;
  const text = (at: Date | null | undefined): string | null => at?.toISOString() ?? null;
  const stats = {
    ...counts,
    lastSuccessAt: text(endpoint?.lastSuccessAt),
    lastFailureAt: text(endpoint?.lastFailureAt),
    failingSince: text(endpoint?.failingSince),
  };
  return recordOf(Webhook, { ...row, status: isFailing ? "failing" : status, stats });
};

export const recordsOf = async (db: Clients, scope: SystemScope, rows: readonly WebhookRow[], now: Date): Promise<Webhook[]> => {
  const counts = await countAttempts(
    db,
    scope,
    rows.map(({ webhookId }) => webhookId),
    now,
  );
  return rows.map((row) => toWebhook(row, counts.get(row.webhookId) ?? NONE));
};
export const recordOfWebhook = async (db: Clients, scope: SystemScope, row: WebhookRow, now: Date): Promise<Webhook> => {
  const [record] = await recordsOf(db, scope, [row], now);
  if (record === undefined) throw new Error("a row has a record");
  return record;
};

/** Webhooks that the gateway has switched off. */
export const findGivenUp = (db: Clients, scope: SystemScope, take: number) =>
  db.for(scope).webhook.findMany({
    where: { ...existing, status: "disabled", disabledReason: { in: ["consecutive_failures", "gone"] } },
    orderBy: [{ disabledAt: "desc" }, { webhookId: "asc" }],
    take,
  });

/** For the plan. */
export const countWebhooks = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).webhook.count({ where: existing });

export const findWebhook = (db: Clients, scope: SystemScope, webhookId: string): Promise<WebhookRow | null> =>
  db.for(scope).webhook.findFirst({ where: { webhookId, ...existing }, include });

/** Another one that sends the same events to the same URL. */
export const findTwin = async (
  db: Clients,
  scope: SystemScope,
  { url, events, except }: { readonly url: string; readonly events: readonly string[]; readonly except?: string | undefined },
): Promise<string | null> => {
  const where = { ...existing, url, events: { equals: [...events] }, ...(except === undefined ? {} : { webhookId: { not: except } }) };
  return (await db.for(scope).webhook.findFirst({ where, select: { webhookId: true } }))?.webhookId ?? null;
};

const list = createListing("webhooks", { createdAt: { kind: "time" }, url: { kind: "text" } }, { column: "webhookId", kind: "text" });
export const pageOfWebhooks = async (db: Clients, scope: SystemScope, query: Parameters<typeof list>[0], now: Date): Promise<Page<Webhook>> => {
  const { webhook } = db.for(scope);
  const { items, ...page } = await list(query, {
    owner: scope.tenantId,
    rows: (asked) => webhook.findMany({ ...asked, where: { ...existing, AND: asked.where }, include }),
    count: () => webhook.count({ where: existing }),
    record: (row: WebhookRow) => row,
  });
  return { items: await recordsOf(db, scope, items, now), ...page };
};

export interface NewWebhook {
  readonly webhookId: string;
  readonly url: string;
  readonly events: string[];
  readonly description: string;
  readonly format: string;
  readonly secret: Uint8Array<ArrayBuffer>;
  readonly secretHint: string;
  readonly headers: Uint8Array<ArrayBuffer> | null;
  readonly headerNames: string[];
  readonly maxPerSecond: number;
  readonly createdBy: string;
}
export const insertWebhook = async (tx: Clients, scope: SystemScope, made: NewWebhook): Promise<WebhookRow> => {
  const row = await tx.for(scope).webhook.create({ data: made });
  const endpoint = await tx.for(scope).webhookEndpoint.create({ data: { webhookId: made.webhookId } });
  return { ...row, endpoint };
};

export interface WebhookChange extends Partial<Omit<NewWebhook, "webhookId" | "createdBy">> {
  readonly status?: "active" | "disabled";
  readonly disabledReason?: string | null;
  readonly disabledAt?: Date | null;
  readonly previousSecret?: Uint8Array<ArrayBuffer> | null;
  readonly previousSecretUntil?: Date | null;
  readonly deletedAt?: Date;
}
/** Null when the version has moved on or the webhook is gone. */
export const updateWebhook = async (
  tx: Clients,
  scope: SystemScope,
  named: { readonly webhookId: string; readonly version?: number | undefined; readonly status?: string },
  change: WebhookChange,
): Promise<WebhookRow | null> => {
  const where = { ...given(named), ...existing };
  const { count } = await tx.for(scope).webhook.updateMany({ where, data: { ...given(change), version: { increment: 1 } } });
  return count === 0 ? null : tx.for(scope).webhook.findFirst({ where: { webhookId: named.webhookId }, include });
};

/** The receiver begins anew: what failed before counts no more, and a node that works on its end stops. */
export const resetEndpoint = async (tx: Clients, scope: SystemScope, webhookId: string, nextDueAt: Date): Promise<void> => {
  await tx.for(scope).webhookEndpoint.updateMany({
    where: { webhookId },
    data: {
      consecutiveFailures: 0,
      failingSince: null,
      holder: null,
      leasedUntil: null,
      fence: { increment: 1 },
      epoch: { increment: 1 },
      nextDueAt,
    },
  });
};
