// Updates many apps at once, for rollouts: what orders.ts writes for one app, in a number of statements that does not grow with the apps.
import { type CommandId, contract, type Details, type ErrorCode } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { type AppError, isAppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { EnqueueEach } from "../../core/ports/delivery.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { type BackUpFirst, both, commandFor, revised } from "./orders.ts";
import type { AppRow } from "./record.ts";
import { moveApp } from "./states.ts";
import type { Steps } from "./steps.ts";
import { insertSnapshots, raiseDesiredOfMany } from "./store/many.ts";
import type { Content } from "./store/snapshots.ts";

export interface WantedUpdate {
  /** Locked. */
  readonly app: AppRow;
  readonly content: Content;
  readonly event: "update" | "rollBack";
}

export type UpdateAnswer =
  | {
      readonly kind: "ordered";
      readonly commandId: CommandId;
      /** The revision that the app must run. */
      readonly revision: number;
    }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string; readonly details: Details };

export interface UpdateManyDeps extends Pick<FeatureKit, "emit"> {
  readonly enqueueEach: EnqueueEach;
  readonly steps: Steps;
  readonly backUpFirst: BackUpFirst;
}

export const refusedBy = ({ code, message, details = {} }: AppError): UpdateAnswer => ({ kind: "refused", code, message, details });

/** The answer of each, in their order; `make` may throw what one is refused with. */
export const answered = <T, O>(items: readonly T[], make: (item: T) => O): readonly (O | UpdateAnswer)[] =>
  items.map((item) => {
    try {
      return make(item);
    } catch (error) {
      if (!isAppError(error)) throw error;
      return refusedBy(error);
    }
  });

interface Ordering {
  readonly by: string;
  /** The devices must have got their orders by then. */
  readonly expiresAt: Date;
}

export const createUpdateMany = ({ emit, enqueueEach, steps, backUpFirst }: UpdateManyDeps) => {
  const order = async (tx: Tx, scope: SystemScope, wanted: readonly WantedUpdate[], { by, expiresAt }: Ordering) => {
    const updated = wanted.filter(({ event }) => event === "update").map(({ app }) => app.appId);
    const backups = updated.length === 0 ? null : await backUpFirst(tx, scope, updated, by);
    const versions = await raiseDesiredOfMany(
      tx,
      scope,
      wanted.map(({ app }) => app.deviceId),
    );
    const patches = wanted.map(({ app, content }) => ({ ...revised(app, content), desiredVersion: versions.get(app.deviceId) ?? 0 }));
    const orders = wanted.map(({ app }, at) => commandFor({ ...app, ...patches[at] } as AppRow, { verb: "deploy", by, expiresAt })); // as: a change holds plain values
    const { results, notify } = await enqueueEach(tx, scope, orders);
    const taken = wanted.flatMap(({ app, event }, at) => {
      const result = results[at];
      if (result?.kind !== "ordered") return [];
      return [{ app, event, by, patch: { ...patches[at], commandId: result.commandId, cancelAsked: false, failure: null } }];
    });
    const apps = taken.map(({ app }) => app);
    const snapshots = await insertSnapshots(tx, scope, apps, by);
    await emit(
      tx,
      snapshots.map(({ appId, snapshotId, revision }) =>
        happened(scope, contract.apps.events.snapshotCreated, appId, { appId, snapshotId, revision, automatic: true }),
      ),
    );
    await steps.takeAll(tx, scope, taken);
    const answers = wanted.map(({ app }, at): UpdateAnswer => {
      const result = results[at];
      if (result === undefined) throw new Error("an order has no answer");
      return result.kind === "ordered" ? { kind: "ordered", commandId: result.commandId, revision: app.lastRevision + 1 } : result;
    });
    return { answers, notify: backups === null ? notify : both(backups.notify, notify) };
  };

  /** Answers in the order of the updates; a refused one has changed nothing of its app. */
  return async (tx: Tx, scope: SystemScope, wanted: readonly (WantedUpdate | UpdateAnswer)[], ordering: Ordering) => {
    const checked = answered(wanted, (each) => {
      if (!("kind" in each)) moveApp(each.app.status, each.event);
      return each;
    });
    const able = checked.flatMap((each) => ("kind" in each ? [] : [each]));
    const made = able.length === 0 ? { answers: [], notify: () => undefined } : await order(tx, scope, able, ordering);
    const rest = made.answers[Symbol.iterator]();
    const answers = checked.map((each): UpdateAnswer => {
      if ("kind" in each) return each;
      const next = rest.next();
      if (next.done === true) throw new Error("an update has no answer");
      return next.value;
    });
    return { answers, notify: made.notify };
  };
};
