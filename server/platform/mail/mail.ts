// Outgoing mail, at least once: a row in the transaction of its cause, a lease by one node, retries with backoff, and an end that people can see.
// A node that dies after the server took a mail and before it could note that leaves it to be sent again, under the same Message-ID.

import { type Clock, secondsFromNow } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import { isMailAddress, type Letter, type Mails, oneLine, renderLetter } from "../../core/ports/mail.ts";
import type { Db } from "../database/db.ts";
import type { Job } from "../jobs.ts";
import type { SealedContext } from "../keys/sealed.ts";
import { type SecretBox, SecretBoxError } from "../keys/secrets.ts";
import type { Log } from "../telemetry/log.ts";
import type { FeatureGauge } from "../telemetry/metrics.ts";
import {
  countMails,
  deleteOldMails,
  deleteQueued,
  findDeliveries,
  insertMail,
  type LeasedMail,
  leaseMails,
  markFailed,
  markSent,
  oldestQueued,
  postpone,
} from "./mail-rows.ts";
import { MailRefused, reasonOf, type SendMail } from "./smtp.ts";

export interface MailsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly secretBox: Pick<SecretBox, "seal" | "open">;
  /** Null without a mail server. */
  readonly send: SendMail | null;
  readonly log: Pick<Log, "warn">;
}

export interface OutgoingMail extends Mails {
  readonly jobs: readonly Job[];
  readonly gauges: readonly FeatureGauge[];
  /** False while the mail server takes nothing from this node. */
  isDelivering(): boolean;
}

/** About 16 hours. */
export const MAX_ATTEMPTS = 13;
const FIRST_DELAY_SECONDS = 30;
const MAX_DELAY_SECONDS = 14_400;
// Longer than an attempt can take.
const LEASE_SECONDS = 180;
const BATCH = 5;
const LOOK_MS = 2_000;
const KEEP_SECONDS = 30 * 86_400;
const MAX_REASON = 300;

/** Doubles from half a minute to four hours, ±20 % so that the mails of a bad hour do not come back together. */
export const retrySeconds = (attempts: number, random: () => number = Math.random): number =>
  Math.round(Math.min(FIRST_DELAY_SECONDS * 2 ** (attempts - 1), MAX_DELAY_SECONDS) * (0.8 + random() * 0.4));

const shown = (reason: string): string => oneLine(reason).slice(0, MAX_REASON).toWellFormed();
const contextOf = (mailId: string): SealedContext => `mail|${mailId}`;

const createDeliver = ({ db, clock, secretBox, log }: Omit<MailsDeps, "send">, send: SendMail, noteOutcome: (delivered: boolean) => void) => {
  const attempt = async (mail: LeasedMail, signal: AbortSignal): Promise<void> => {
    const { mailId, recipient, content, attempts } = mail;
    // The node that made the last attempt never came back.
    if (attempts > MAX_ATTEMPTS) throw new MailRefused("the last attempt did not end");
    const letter = JSON.parse(secretBox.open(content, contextOf(mailId))) as Letter; // as: `order` sealed one
    await send({ mailId, to: recipient, ...renderLetter(letter) }, signal);
  };
  return async (mail: LeasedMail, signal: AbortSignal): Promise<void> => {
    const { mailId, attempts } = mail;
    try {
      await attempt(mail, signal);
    } catch (error) {
      const isRefused = error instanceof MailRefused || error instanceof SecretBoxError;
      const isGivenUp = isRefused || attempts >= MAX_ATTEMPTS;
      const reason = shown(isRefused ? error.message : reasonOf(error));
      if (!isRefused) noteOutcome(false);
      log.warn({ mailId, attempts, error }, isGivenUp ? "gave up a mail" : "could not send a mail yet");
      if (isGivenUp) return markFailed(db, mail, reason);
      return postpone(db, mail, reason, secondsFromNow(retrySeconds(attempts), clock.now()));
    }
    noteOutcome(true);
    await markSent(db, mail, clock.now());
  };
};

export const createMails = (deps: MailsDeps): OutgoingMail => {
  const { db, secretBox, send, clock } = deps;
  let delivering = true;
  const noteOutcome = (delivered: boolean): void => {
    delivering = delivered;
  };
  const sendJob = (deliver: ReturnType<typeof createDeliver>): Job => ({
    name: "mails.send",
    everyMs: LOOK_MS,
    run: async (signal) => {
      const leased = await leaseMails(db, LEASE_SECONDS, BATCH);
      await Promise.all(leased.map((mail) => deliver(mail, signal)));
      return leased.length === BATCH;
    },
  });
  return {
    enabled: send !== null,
    order: async (tx, { tenantId, to, letter }) => {
      if (send === null || !isMailAddress(to)) return null;
      const mailId = newId("mal");
      await insertMail(tx, { mailId, tenantId, recipient: to, content: secretBox.seal(JSON.stringify(letter), contextOf(mailId)) });
      return mailId;
    },
    cancel: deleteQueued,
    deliveries: async (clients, mailIds) => (mailIds.length === 0 ? new Map() : findDeliveries(clients, mailIds)),
    isDelivering: () => delivering,
    jobs: [
      ...(send === null ? [] : [sendJob(createDeliver(deps, send, noteOutcome))]),
      { name: "mails.forget", everyMs: 3_600_000, run: () => deleteOldMails(db, secondsFromNow(-KEEP_SECONDS, clock.now())) },
    ],
    gauges: [
      {
        name: "mails",
        help: "Mails of the last 30 days by status: queued, sent or failed",
        labels: ["status"],
        read: async () => [...(await countMails(db))].map(([status, count]) => [{ status }, count] as const),
      },
      {
        name: "mail_oldest_queued_seconds",
        help: "Seconds since the oldest queued mail was ordered",
        read: async () => {
          const since = await oldestQueued(db);
          return since === null ? 0 : Math.max(0, (clock.now().getTime() - since.getTime()) / 1_000);
        },
      },
    ],
  };
};
