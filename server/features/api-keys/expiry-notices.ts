// Tells of keys that expire soon: an event seven days before, another one day before, each once however many nodes run.
import { contract } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import { happened } from "../../core/events.ts";
import type { Job } from "../../platform/jobs.ts";
import type { FeatureKit } from "../kit.ts";
import { findExpiring, writeNotice } from "./store.ts";

const EVERY_MS = 60_000;
const BATCH = 100;
/** The later one first: a key that is first seen on its last day needs no word of seven days. */
const NOTICES = [1, 7] as const;

export const createExpiryNotices = ({ db, emit, clock }: Pick<FeatureKit, "db" | "emit"> & { readonly clock: Clock }): Job => {
  const { expiring } = contract.apiKeys.events;
  const tell = async (days: number): Promise<boolean> => {
    const now = clock.now();
    const due = await findExpiring(db, { days, now, until: secondsFromNow(days * DAY_SECONDS, now), limit: BATCH });
    for (const { tenantId, keyId, name, expiresAt } of due)
      await db.tx(async (tx) => {
        const scope = { tenantId };
        // False when another node was faster, or the key was revoked since.
        if (await writeNotice(tx, scope, { keyId, days }))
          await emit(tx, [happened(scope, expiring, keyId, { keyId, name, expiresAt: expiresAt.toISOString() })]);
      });
    return due.length === BATCH;
  };
  return {
    name: "api-keys.tell-expiry",
    everyMs: EVERY_MS,
    run: async () => {
      let more = false;
      for (const days of NOTICES) more = (await tell(days)) || more;
      return more;
    },
  };
};
