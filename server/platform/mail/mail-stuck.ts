// Mails that did not reach their server, for the people who run the installation.
import { type Clock, secondsFromNow } from "../../core/clock.ts";
import type { FindStuck, Stuck } from "../../core/people/stuck.ts";
import type { Db } from "../database/db.ts";
import { findStuckMails, type StuckMail } from "./mail-rows.ts";

// Some attempts have failed by then.
const LATE_SECONDS = 900;

const stuckOf = (kind: "mail_failed" | "mail_late", { mailId, tenantId, createdAt, attempts, lastError }: StuckMail): Stuck => ({
  kind,
  tenantId,
  id: mailId,
  since: createdAt,
  reason: `${kind === "mail_failed" ? "given up" : "not sent yet"} after ${attempts} attempts${lastError === null ? "" : `: ${lastError}`}`,
  whatToDo:
    kind === "mail_failed"
      ? "Repair what the reason names and let its cause send it again; an invite can be resent. It is listed for 30 days."
      : "Look at the mail server and at the job mails.send, which tries again by itself.",
});

export const createStuckMails =
  ({ db, clock }: { readonly db: Db; readonly clock: Clock }): FindStuck =>
  async (limit) => {
    const [failed, late] = await Promise.all([
      findStuckMails(db, { failed: true }, limit),
      findStuckMails(db, { queuedBefore: secondsFromNow(-LATE_SECONDS, clock.now()) }, limit),
    ]);
    return [...failed.map((mail) => stuckOf("mail_failed", mail)), ...late.map((mail) => stuckOf("mail_late", mail))];
  };
