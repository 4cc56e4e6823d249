// Hands one mail to an SMTP server, within a bounded time, and says whether another attempt can help.
import type { RenderedMail } from "../../core/ports/mail.ts";

export interface SmtpSettings {
  /** smtp:// or smtps://, with user and password. */
  readonly url: string;
  /** The sender, as `Name <address>`. */
  readonly from: string;
}

export interface Parcel extends RenderedMail {
  /** The same for every attempt, so that receiving systems recognise a second copy. */
  readonly mailId: string;
  readonly to: string;
}

/** Rejects with a MailRefused if the server will never take the mail; any other error is worth another attempt. */
export type SendMail = (parcel: Parcel, signal: AbortSignal) => Promise<void>;

export class MailRefused extends Error {
  override readonly name = "MailRefused";
}

const CONNECT_MS = 10_000;
const SILENCE_MS = 20_000;
// A server that trickles could keep a connection open for ever.
const SEND_MS = 60_000;
const TIMEOUTS = { dnsTimeout: CONNECT_MS, connectionTimeout: CONNECT_MS, greetingTimeout: CONNECT_MS, socketTimeout: SILENCE_MS, socketCloseTimeout: 1_000 };

interface SmtpError extends Error {
  readonly code?: string;
  readonly responseCode?: number;
  readonly response?: string;
}

/** A refused sign-in is the operator's to repair, and 503 says that the session was in the wrong state: both may go well later. */
const isForEver = ({ code, responseCode = 0 }: SmtpError): boolean =>
  code !== "EAUTH" && code !== "ENOAUTH" && responseCode >= 500 && responseCode < 600 && responseCode !== 503;

/** What a tenant's administrator may read: the server's words, or the kind of failure, but no address of ours. */
export const reasonOf = (error: unknown): string => {
  const { code, response, responseCode } = error as SmtpError;
  if (code === "EAUTH" || code === "ENOAUTH") return "the mail server refuses our sign-in";
  if (response !== undefined && responseCode !== undefined) return response;
  return `the mail server could not be reached (${code ?? "unknown"})`;
};

const boundBy = (signal: AbortSignal) => {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), SEND_MS);
  return { signal: AbortSignal.any([signal, late.signal]), release: () => clearTimeout(timer) };
};

/** Null without a mail server. */
export const createSmtp = (settings: SmtpSettings | null): SendMail | null => {
  if (settings === null) return null;
  const { url, from } = settings;
  const domain = /@([^@>\s]+)>?\s*$/.exec(from)?.[1] ?? "localhost";
  // Loaded with the first mail: an installation without a mail server does not pay for the library.
  const open = async () => (await import("nodemailer")).createTransport({ url, ...TIMEOUTS, disableFileAccess: true, disableUrlAccess: true });
  let transport: ReturnType<typeof open> | undefined;
  return async ({ mailId, to, ...mail }, signal) => {
    transport ??= open();
    const bound = boundBy(signal);
    try {
      // The address as an object: as text, a comma in it would name a second recipient.
      const message = { ...mail, from, to: { name: "", address: to }, messageId: `<${mailId}@${domain}>`, headers: { "Auto-Submitted": "auto-generated" } };
      await (await transport).sendMail({ ...message, signal: bound.signal });
    } catch (error) {
      throw isForEver(error as SmtpError) ? new MailRefused(reasonOf(error), { cause: error }) : error;
    } finally {
      bound.release();
    }
  };
};
