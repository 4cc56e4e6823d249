// Begins a rollout whose time has come: freezes its devices, chunk by chunk, and lays out the phases.
import type { Tx } from "../../../core/database.ts";
import type { FindFleet, RolloutFleet } from "../fleet.ts";
import { openOf, type RolloutRow } from "../record.ts";
import { phasesOf, sizesOf } from "../rules/phases.ts";
import { CHUNK, type FrozenChunk, freezeFleet, freezeParent } from "../store/freeze.ts";
import { findRollout } from "../store/rollouts.ts";
import type { Draft } from "./draft.ts";
import { templateOf } from "./pull.ts";

export const MAX_DEVICES = 100_000;
const AGAIN_MS = 2_000;

const freeze = async (tx: Tx, draft: Draft, fleet: RolloutFleet): Promise<FrozenChunk> => {
  const { row, scope } = draft;
  const { phases, configuration } = row.settings;
  const tags = phases.flatMap(({ tag }) => (tag === null ? [] : [tag]));
  const asked = { rolloutId: row.rolloutId, subject: row.subject, template: templateOf(draft), version: row.target.version, configuration, tags };
  const place = { after: row.frozenTo, positions: row.pending };
  const parentId = row.rollbackOf ?? row.retryOf;
  if (parentId !== null) return freezeParent(tx, scope, asked, { parent: { parentId, kind: row.rollbackOf === null ? "retry" : "rollback" }, place });
  return freezeFleet(tx, scope, asked, { fleet: { ...fleet, onlyNew: row.followOf !== null }, place });
};

const fail = (draft: Draft, reason: NonNullable<RolloutRow["statusReason"]>): void => {
  draft.to("failed", { event: "failed", by: "system", reason }, { statusReason: reason, completedAt: draft.now });
  draft.wait(null);
  draft.tellStop("failed");
};

/** The devices of a rollback are those of another rollout, whose own orders have to end first. */
const waitsForParent = async (tx: Tx, { row, scope }: Draft): Promise<boolean> => {
  if (row.rollbackOf === null) return false;
  const parent = await findRollout(tx, { tenantId: scope.tenantId }, row.rollbackOf);
  return parent !== null && parent.pending + openOf(parent) > 0;
};

const layOut = (draft: Draft): void => {
  const { row, now } = draft;
  const { phases } = row.settings;
  draft.patch({ phases: phasesOf(phases, sizesOf(phases, row.pending)), startedAt: now });
  draft.to("running", { event: "started", by: "system" });
  draft.wait(null);
  draft.tell("started");
};

export const begin = async (tx: Tx, draft: Draft, findFleet: FindFleet): Promise<void> => {
  const { row, now, scope } = draft;
  if (row.startAt !== null && row.startAt > now) {
    draft.wait("start", row.startAt);
    draft.by(row.startAt);
    return;
  }
  if (await waitsForParent(tx, draft)) {
    draft.wait("device_elsewhere");
    draft.by(new Date(now.getTime() + AGAIN_MS));
    return;
  }
  const fleet = await findFleet(tx, scope, row.fleetId);
  if (fleet === null) return fail(draft, "NO_DEVICES");
  const { pending, skipped, key, more } = await freeze(tx, draft, fleet);
  draft.patch({
    pending: row.pending + pending,
    skipped: row.skipped + skipped,
    total: row.total + pending + skipped,
    frozenTo: key ?? row.frozenTo,
  });
  if (draft.row.pending > MAX_DEVICES) return fail(draft, "ROLLOUT_TOO_LARGE");
  if (more) {
    draft.wait("freezing");
    draft.by(now);
    return;
  }
  if (draft.row.total === 0) return fail(draft, "NO_DEVICES");
  layOut(draft);
};

export { CHUNK };
