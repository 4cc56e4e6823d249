// Outgoing mail as features see it: they order a letter in their transaction, and a job sends it after the commit.
import { z } from "zod";
import type { Clients } from "../database.ts";

export interface Letter {
  readonly subject: string;
  /** Paragraphs of plain text, in order. */
  readonly lines: readonly string[];
  /** Below the paragraphs. */
  readonly link?: { readonly label: string; readonly url: string };
}

export interface MailOrder {
  /** Null for mail about an account. */
  readonly tenantId: string | null;
  readonly to: string;
  readonly letter: Letter;
}

export interface MailDelivery {
  readonly status: "queued" | "sent" | "failed";
  readonly attempts: number;
  /** Why the last attempt failed, without addresses of ours. */
  readonly lastError: string | null;
}

export interface Mails {
  /** False when no mail server is configured; then `order` orders nothing. */
  readonly enabled: boolean;
  /** The mail's id; null when no mail can be sent to this address. */
  order(tx: Clients, order: MailOrder): Promise<string | null>;
  /** Takes back a mail that has not been sent. One that a node is sending right now still arrives. */
  cancel(tx: Clients, mailId: string): Promise<void>;
  /** By id; a mail whose record is over is missing. */
  deliveries(db: Clients, mailIds: readonly string[]): Promise<ReadonlyMap<string, MailDelivery>>;
}

const Address = z.email().max(254);
/** A claim of a token may hold any text. */
export const isMailAddress = (text: string): boolean => Address.safeParse(text).success;

/** One line without control characters: what a person typed must not start another header or forge a line of ours. */
export const oneLine = (text: string): string => text.replace(/\p{C}+|\p{Zl}|\p{Zp}/gu, " ").trim();

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&#39;"],
]);
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ESCAPES.get(sign) ?? "");

export interface RenderedMail {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

export const renderLetter = ({ subject, lines, link }: Letter): RenderedMail => ({
  subject: oneLine(subject),
  text: [...lines, ...(link === undefined ? [] : [`${link.label}:\n${link.url}`])].join("\n\n"),
  html: [
    ...lines.map((line) => `<p>${escaped(line).replaceAll("\n", "<br>")}</p>`),
    ...(link === undefined ? [] : [`<p><a href="${escaped(link.url)}">${escaped(link.label)}</a></p>`, `<p>${escaped(link.url)}</p>`]),
  ].join("\n"),
});
