// Sends one message to one channel: over the outbound client, or as mail. Says what came of it, and whether another attempt can help.
import type { ChannelConfig } from "../../../protocol/index.ts";
import { signingKeyOf, standardHeaders } from "../../core/people/standard-webhooks.ts";
import { oneLine } from "../../core/ports/mail.ts";
import { type Outbound, OutboundError, type OutboundFailure } from "../../core/ports/outbound.ts";
import type { FeatureKit } from "../kit.ts";
import { configContext, openConfig } from "./channel-config.ts";
import { letterOf, postOf } from "./messages.ts";
import type { AlertMessage } from "./model.ts";
import type { SealedChannel } from "./store/channels.ts";

export { configContext };

export interface SendOutcome {
  readonly delivered: boolean;
  readonly statusCode: number | null;
  readonly error: string | null;
  /** Another attempt cannot help. */
  readonly isFinal: boolean;
}

export interface AlertParcel {
  /** The same for every attempt, so that a receiver recognises a second copy. */
  readonly id: string;
  readonly channel: SealedChannel;
  readonly message: AlertMessage;
  readonly signal: AbortSignal;
}
export type Send = (parcel: AlertParcel) => Promise<SendOutcome>;

const TIMEOUT_MS = 10_000;
const KEPT_BYTES = 1_024;

const signerOf = (id: string, secret: string, at: Date) => (body: string) => standardHeaders(id, body, { keys: [signingKeyOf(secret)], at });

const REASONS: Readonly<Record<OutboundFailure, string>> = {
  BLOCKED: "its address is not allowed",
  DNS: "its name does not resolve",
  CONNECT: "it cannot be reached",
  TLS: "its certificate or TLS failed",
  TIMEOUT: "it did not answer in time",
  TOO_LARGE: "its answer is too large",
  PROTOCOL: "its answer is no valid HTTP",
};

const outcomeOf = (statusCode: number, body: Buffer): SendOutcome => {
  if (statusCode >= 200 && statusCode < 300) return { delivered: true, statusCode, error: null, isFinal: true };
  const words = oneLine(body.toString("utf8").slice(0, 200)).toWellFormed();
  const isFinal = statusCode >= 300 && statusCode < 500 && statusCode !== 408 && statusCode !== 429;
  return { delivered: false, statusCode, error: `it answered ${statusCode}${words === "" ? "" : `: ${words}`}`, isFinal };
};
const failed = (error: string, isFinal: boolean): SendOutcome => ({ delivered: false, statusCode: null, error, isFinal });

const ofPost = async (outbound: Outbound, call: Parameters<Outbound["send"]>[0]): Promise<SendOutcome> => {
  try {
    const { statusCode, body } = await outbound.send(call);
    return outcomeOf(statusCode, body);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    return failed(REASONS[error.code], error.code === "BLOCKED");
  }
};

export const createSend = ({ db, secretBox, outbound, mails, clock }: Pick<FeatureKit, "db" | "secretBox" | "outbound" | "mails" | "clock">): Send => {
  const mail = async ({ channel, message }: AlertParcel, { to = [] }: ChannelConfig): Promise<SendOutcome> => {
    if (!mails.enabled) return failed("this installation has no mail server", true);
    await db.tx(async (tx) => {
      for (const address of to) await mails.order(tx, { tenantId: channel.tenantId, to: address, letter: letterOf(message) });
    });
    return { delivered: true, statusCode: null, error: null, isFinal: true };
  };
  return async (parcel) => {
    const { id, channel, message, signal } = parcel;
    const config = openConfig(secretBox, channel);
    if (config === null) return failed("its settings were sealed with another master key", true);
    if (channel.type === "email") return mail(parcel, config);
    const post = postOf(channel.type, { config, message, sign: signerOf(id, config.secret ?? "", clock.now()) });
    return ofPost(outbound, { ...post, method: "POST", timeoutMs: TIMEOUT_MS, maxBodyBytes: KEPT_BYTES, signal, owner: channel.tenantId });
  };
};
