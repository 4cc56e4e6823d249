// The transaction of a proven hello: presence is taken over and the command queue settles with what the agent still holds.
import type { CommandDelivery } from "../../core/delivery.ts";
import type { Sessions } from "../../core/sessions.ts";
import type { Db } from "../../platform/db.ts";
import type { Presence } from "./presence.ts";
import type { SignatureLock } from "./signature-lock.ts";

export interface SessionsDeps {
  readonly db: Db;
  readonly presence: Pick<Presence, "open" | "holder" | "reportDuplicate">;
  readonly delivery: Pick<CommandDelivery, "settle">;
  readonly signatureLock: Pick<SignatureLock, "set">;
}

export const createSessions = ({ db, presence, delivery, signatureLock }: SessionsDeps): Sessions => ({
  holder: presence.holder,
  reportDuplicate: presence.reportDuplicate,
  begin: (hello) =>
    db.sqlTx(async (tx) => {
      const { epoch, previousNodeId, previousSessionId } = await presence.open(tx, hello);
      if (hello.locksSignature) await signatureLock.set(tx, hello.device);
      const handedOver = hello.handoffFrom !== null && hello.handoffFrom === previousSessionId;
      const settled = await delivery.settle(tx, hello.device, { epoch, inFlight: hello.inFlight, journal: hello.journal, handoff: handedOver });
      return { epoch, previousNodeId, handedOver, reconcile: settled.reconcile, queuedCount: settled.queuedCount, notify: settled.notify };
    }),
});
