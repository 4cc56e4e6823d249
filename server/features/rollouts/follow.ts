// Devices that join a fleet after its rollout: for a policy that follows them, a rollout of their own brings them the same update.

import { contract } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import { isAppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { FindFleet } from "./fleet.ts";
import { addRolloutStep } from "./record.ts";
import type { Starting } from "./starting.ts";
import { rolloutEventData } from "./step/draft.ts";
import { previewFleet } from "./store/freeze.ts";
import { findFollowed, GIVEN_UP, hasLiveRollout, lockRollout, saveRollout } from "./store/rollouts.ts";

export interface FollowNewDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly starting: Starting;
  readonly findFleet: FindFleet;
}

const AT_ONCE = 100;
const FOLLOWED_DAYS = 400;

const giveUp = async ({ db, clock, emit }: FollowNewDeps, scope: SystemScope, rolloutId: string): Promise<void> =>
  db.tx(async (tx) => {
    const row = await lockRollout(tx, scope, rolloutId);
    if (row === null || row.steps.some(({ event }) => event === GIVEN_UP)) return;
    const saved = await saveRollout(tx, scope, { ...row, steps: addRolloutStep(row, row.status, { event: GIVEN_UP, by: "system" }, clock.now()) });
    await emit(tx, [happened(scope, contract.rollouts.events.followGivenUp, rolloutId, rolloutEventData(saved))]);
  });

/** True if there may be more. */
export const followNewDevices = async (deps: FollowNewDeps): Promise<boolean> => {
  const { db, clock, starting, findFleet } = deps;
  const found = await findFollowed(db, secondsFromNow(-FOLLOWED_DAYS * DAY_SECONDS, clock.now()), AT_ONCE);
  for (const { row, givenUp } of found) {
    const scope: SystemScope = { tenantId: row.tenantId as SystemScope["tenantId"] }; // as: a row's id
    if (givenUp) {
      await giveUp(deps, scope, row.rolloutId);
      continue;
    }
    const { subject, phases, configuration } = row.settings;
    const template = subject.kind === "app" ? subject.template : null;
    const tags = phases.flatMap(({ tag }) => (tag === null ? [] : [tag]));
    await db
      .tx(async (tx) => {
        const fleet = await findFleet(tx, scope, row.fleetId);
        if (fleet === null || (await hasLiveRollout(tx, scope, row.fleetId))) return;
        const asked = { rolloutId: "", subject: row.subject, template, version: row.target.version, configuration, tags };
        const groups = await previewFleet(tx, scope, asked, { ...fleet, onlyNew: true });
        if (groups.some(({ code, count }) => code === null && count > 0)) await starting.follow(tx, scope, row);
      })
      .catch((error: unknown) => {
        // The plan allows no more rollouts now; the next hour asks again.
        if (!isAppError(error)) throw error;
      });
  }
  return false;
};
