// Close codes of the agent socket: 4000-4499 reconnect as told, 4500-4999 stop until an operator or new credentials.
export const CLOSE = {
  normal: { code: 1000, token: "normal" },
  goingAway: { code: 1001, token: "going_away" },
  drain: { code: 1012, token: "drain" },
  tryLater: { code: 1013, token: "try_later" },
  protocolError: { code: 4000, token: "protocol_error" },
  helloTimeout: { code: 4001, token: "hello_timeout" },
  heartbeatTimeout: { code: 4002, token: "heartbeat_timeout" },
  slowConsumer: { code: 4008, token: "slow_consumer" },
  superseded: { code: 4009, token: "superseded" },
  frameTooBig: { code: 4013, token: "frame_too_big" },
  rateLimited: { code: 4029, token: "rate_limited" },
  sessionExpired: { code: 4031, token: "session_expired" },
  secretRotated: { code: 4032, token: "secret_rotated" },
  serverError: { code: 4040, token: "server_error" },
  authFailed: { code: 4500, token: "auth_failed" },
  deviceRevoked: { code: 4501, token: "device_revoked" },
  tenantSuspended: { code: 4503, token: "tenant_suspended" },
  protocolUnsupported: { code: 4504, token: "protocol_unsupported" },
  duplicateIdentity: { code: 4505, token: "duplicate_identity" },
} as const;

export type Close = (typeof CLOSE)[keyof typeof CLOSE];

/** The reason text: `token` or `token;ra=<seconds>`. */
export const closeReason = ({ token }: Close, retryAfterSeconds?: number): string =>
  retryAfterSeconds === undefined ? token : `${token};ra=${retryAfterSeconds}`;

/** True when the agent must not come back by itself. */
export const isTerminalClose = (code: number): boolean => code >= 4500 && code <= 4999;
