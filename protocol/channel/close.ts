// Close codes of the agent socket. Below 4500 the agent reconnects; from 4500 on it stops and asks over REST. `ra` in the reason overrides both: it says when to reconnect.
// The gateway picks `ra` from the range `waitSec`, so that agents that are closed together reconnect apart. Without `waitSec` the agent backs off by its own rules.
export const CLOSE = {
  normal: { code: 1000, token: "normal" },
  goingAway: { code: 1001, token: "going_away" },
  drain: { code: 1012, token: "drain", waitSec: [1, 5] },
  tryLater: { code: 1013, token: "try_later", waitSec: [5, 10] },
  protocolError: { code: 4000, token: "protocol_error", waitSec: [30, 60] },
  helloTimeout: { code: 4001, token: "hello_timeout" },
  heartbeatTimeout: { code: 4002, token: "heartbeat_timeout" },
  slowConsumer: { code: 4008, token: "slow_consumer" },
  superseded: { code: 4009, token: "superseded", waitSec: [30, 60] },
  frameTooBig: { code: 4013, token: "frame_too_big" },
  rateLimited: { code: 4029, token: "rate_limited", waitSec: [1, 5] },
  sessionExpired: { code: 4031, token: "session_expired", waitSec: [1, 10] },
  secretRotated: { code: 4032, token: "secret_rotated" },
  serverError: { code: 4040, token: "server_error" },
  authFailed: { code: 4500, token: "auth_failed" },
  deviceRevoked: { code: 4501, token: "device_revoked" },
  tenantSuspended: { code: 4503, token: "tenant_suspended", waitSec: [3_600, 3_960] },
  protocolUnsupported: { code: 4504, token: "protocol_unsupported" },
  duplicateIdentity: { code: 4505, token: "duplicate_identity", waitSec: [900, 990] },
} as const;

export type Close = (typeof CLOSE)[keyof typeof CLOSE];

/** Replaces the range of `superseded` for two agents that keep superseding each other. */
export const PING_PONG_WAIT_SEC = [900, 990] as const;

/** The reason text: `token` or `token;ra=<seconds>`. */
export const closeReason = ({ token }: Close, retryAfterSeconds?: number): string =>
  retryAfterSeconds === undefined ? token : `${token};ra=${retryAfterSeconds}`;

/** True if the agent must ask over REST before it reconnects, unless the reason names a wait. */
export const isTerminalClose = (code: number): boolean => code >= 4500 && code <= 4999;
