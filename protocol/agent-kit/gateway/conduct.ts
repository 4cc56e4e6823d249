// How the kit's gateway behaves in a case. The default is a gateway that does everything right, with short waits.
import type { HeardAck } from "./order-book.ts";
import type { HeardCall, KitReply } from "./reply.ts";

export interface SaidAck {
  readonly data: Readonly<Record<string, unknown>>;
  /** Default: the id of the ack's frame. */
  readonly ref?: string;
}

export interface Conduct {
  /** Answers an upgrade instead of a session. */
  onUpgrade: () => KitReply | null;
  /** Answers a call instead of the gateway. */
  onCall: (call: HeardCall) => KitReply | null;
  /** Fields of `welcome` beside protocol, session, nonce and time. */
  welcome: Readonly<Record<string, unknown>>;
  welcomes: boolean;
  /** Whether a good hello gets its `ready` at once. */
  readies: boolean;
  readyMore: Readonly<Record<string, unknown>>;
  /** Default: `continue` for each listed command. */
  reconcile: readonly { readonly commandId: string; readonly action: string }[] | null;
  answersHeartbeats: boolean;
  heartbeatMore: Readonly<Record<string, unknown>>;
  /** Null: no answer. */
  answerAck: (ack: HeardAck, stored: Readonly<Record<string, unknown>>) => SaidAck | null;
  /** Whether commands are pushed over sessions, and given to polls. */
  pushes: boolean;
  pollSeconds: number;
}

/** Every wait comes from the gateway, so the kit's cases are quick without a change of the agent. */
export const QUICK = {
  heartbeat: { intervalSec: 1, jitterPct: 10, graceMs: 500 },
  ack: { resendMs: 500, capMs: 1_000 },
  limits: { maxFrameBytes: 131_072, maxOutputBytes: 65_536, maxInFlight: 32, inboundPerSec: 20 },
  reconnect: { firstWindowMs: 200, baseMs: 100, capMs: 800, stableAfterSec: 60 },
  poll: { intervalSec: 1, safetySec: 900 },
  sessionMaxAgeSec: 86_400,
};

export const goodConduct = (): Conduct => ({
  onUpgrade: () => null,
  onCall: () => null,
  welcome: QUICK,
  welcomes: true,
  readies: true,
  readyMore: {},
  reconcile: null,
  answersHeartbeats: true,
  heartbeatMore: {},
  answerAck: (_ack, stored) => ({ data: stored }),
  pushes: true,
  pollSeconds: 1,
});
