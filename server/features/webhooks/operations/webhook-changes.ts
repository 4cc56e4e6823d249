// Create, change, delete webhooks, and rotate their secrets.
import type { contract, TenantId } from "../../../../protocol/index.ts";
import { type Clock, secondsFromNow } from "../../../core/clock.ts";
import type { Tx } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { newId } from "../../../core/ids.ts";
import { pageWithActors, withActor } from "../../../core/people/actors.ts";
import { actorOf, type SystemScope } from "../../../core/scope.ts";
import { LOCK } from "../../../core/statements.ts";
import type { FeatureKit } from "../../kit.ts";
import type { Disable } from "../delivery/disable.ts";
import { findTwin, findWebhook, insertWebhook, pageOfWebhooks, recordOfWebhook, resetEndpoint, updateWebhook, type WebhookChange } from "../store/endpoints.ts";
import { markDue } from "../store/fan-out.ts";
import { checkEvents, checkUrl, sealHeaders, sealSecret } from "./checks.ts";

export interface WebhookChangesDeps extends Pick<FeatureKit, "db" | "plan" | "secretBox" | "outbound" | "emit"> {
  readonly clock: Clock;
  readonly disable: Disable;
}

type Own = "list" | "get" | "create" | "update" | "remove" | "rotateSecret";
const unknown = (webhookId: string): AppError => new AppError("WEBHOOK_NOT_FOUND", { details: { webhookId } });

/** No index can say it, so writers take turns. */
const requireNoTwin = async (tx: Tx, scope: SystemScope, wanted: Parameters<typeof findTwin>[2]): Promise<void> => {
  await tx.query(LOCK, [`webhooks of ${scope.tenantId}`]);
  const webhookId = await findTwin(tx, scope, wanted);
  if (webhookId !== null) throw new AppError("WEBHOOK_ALREADY_EXISTS", { details: { webhookId } });
};

export const createWebhookChanges = (deps: WebhookChangesDeps): Pick<Handlers<typeof contract.webhooks>, Own> => ({
  ...createReads(deps),
  ...createCreate(deps),
  ...createUpdate(deps),
  ...createEnds(deps),
});

const createReads = ({ db, clock }: WebhookChangesDeps): Pick<Handlers<typeof contract.webhooks>, "list" | "get"> => ({
  list: async ({ scope }, query) => pageWithActors(db, scope, await pageOfWebhooks(db, scope, query, clock.now())),
  get: async ({ scope }, { webhookId }) => {
    const row = await findWebhook(db, scope, webhookId);
    if (row === null) throw unknown(webhookId);
    return withActor(db, scope, await recordOfWebhook(db, scope, row, clock.now()));
  },
});

const createCreate = ({ clock, plan, secretBox, outbound }: WebhookChangesDeps): Pick<Handlers<typeof contract.webhooks>, "create"> => ({
  create: async ({ scope, commit }, { events: patterns, secret, headers, ...fields }) => {
    const events = checkEvents(patterns);
    await checkUrl(outbound, scope, fields.url);
    const named = { tenantId: scope.tenantId, webhookId: newId("wh") };
    const { columns, shown } = sealSecret(secretBox, named, secret);
    const kept = sealHeaders(secretBox, named, headers);
    return commit(async (tx) => {
      await plan.require(tx, scope, "webhooks", 1);
      await requireNoTwin(tx, scope, { url: fields.url, events });
      const { webhookId } = named;
      const row = await insertWebhook(tx, scope, { ...fields, ...columns, ...kept, webhookId, events, createdBy: actorOf(scope.principal) });
      return { ...(await recordOfWebhook(tx, scope, row, clock.now())), ...shown };
    });
  },
});

const createUpdate = ({ clock, secretBox, outbound, disable }: WebhookChangesDeps): Pick<Handlers<typeof contract.webhooks>, "update"> => {
  const enable = async (tx: Tx, scope: SystemScope, webhookId: string): Promise<void> => {
    await updateWebhook(tx, scope, { webhookId }, { status: "active", disabledReason: null, disabledAt: null });
    await resetEndpoint(tx, scope, webhookId, clock.now());
  };
  return {
    update: async ({ scope, commit }, { webhookId, version, status, headers, events: patterns, ...fields }) => {
      const events = patterns === undefined ? undefined : checkEvents(patterns);
      await checkUrl(outbound, scope, fields.url);
      const named = { tenantId: scope.tenantId, webhookId };
      const kept = headers === undefined ? {} : sealHeaders(secretBox, named, headers);
      const change = { ...fields, ...kept, ...(events === undefined ? {} : { events }) } as WebhookChange; // as: the store leaves out what is undefined
      return commit(async (tx) => {
        const before = await findWebhook(tx, scope, webhookId);
        if (before === null) throw unknown(webhookId);
        if (fields.url !== undefined || events !== undefined)
          await requireNoTwin(tx, scope, { url: fields.url ?? before.url, events: events ?? before.events, except: webhookId });
        const changed = await updateWebhook(tx, scope, { webhookId, version }, change);
        if (changed === null) throw new AppError("VERSION_CONFLICT", { details: { currentVersion: before.version } });
        if (status === "disabled") await disable(tx, named, "manual");
        else if (status === "active") await enable(tx, scope, webhookId);
        else await markDue(tx, [webhookId]);
        return recordOfWebhook(tx, scope, (await findWebhook(tx, scope, webhookId)) ?? changed, clock.now());
      });
    },
  };
};

const createEnds = ({ secretBox, clock }: WebhookChangesDeps): Pick<Handlers<typeof contract.webhooks>, "remove" | "rotateSecret"> => ({
  remove: ({ scope, commit }, { webhookId }) =>
    commit(async (tx) => {
      if ((await updateWebhook(tx, scope, { webhookId }, { deletedAt: clock.now() })) === null) throw unknown(webhookId);
      await markDue(tx, [webhookId]);
      return null;
    }),

  rotateSecret: ({ scope, commit }, { webhookId, secret, graceSeconds }) =>
    commit(async (tx) => {
      const before = await findWebhook(tx, scope, webhookId);
      if (before === null) throw unknown(webhookId);
      const { columns, shown } = sealSecret(secretBox, { tenantId: scope.tenantId as TenantId, webhookId }, secret);
      const grace =
        graceSeconds === 0
          ? { previousSecret: null, previousSecretUntil: null }
          : { previousSecret: before.secret, previousSecretUntil: secondsFromNow(graceSeconds, clock.now()) };
      const row = await updateWebhook(tx, scope, { webhookId }, { ...columns, ...grace });
      if (row === null) throw unknown(webhookId);
      await markDue(tx, [webhookId]);
      return { ...(await recordOfWebhook(tx, scope, row, clock.now())), ...shown };
    }),
});
