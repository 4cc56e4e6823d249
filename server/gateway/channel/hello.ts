// Judges a hello: the proof first, then whether another holder of the same identity lives, then the epoch. Only a good proof changes anything.
import { CLOSE, type Close, type Hello, parseTimestamp } from "../../../protocol/index.ts";
import type { AgentRecord, AgentRegistry } from "../../core/agent-registry.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import type { SessionBegun, SessionHello, Sessions } from "../../core/sessions.ts";
import { checkSkew, checkVersion, matchSecret } from "../auth/agent.ts";
import type { Rivals } from "./rivals.ts";
import type { Challenge, Session } from "./session.ts";

export interface HelloDeps {
  readonly agents: Pick<AgentRegistry, "take" | "promote">;
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly rivals: Pick<Rivals, "lives">;
  readonly onError: (error: unknown, session: Session) => void;
}

interface Refusal {
  readonly close: Close;
  readonly error: AppError;
  readonly retryAfterSeconds?: number;
}
export type HelloVerdict = { readonly begun: SessionBegun } | Refusal;

const JOURNAL = "journal.v1";
const IN_FLIGHT = "inflight.v1";
const CANCEL = "cancel.v1";
const SECOND_FORM = "signature.v2";
const RETRY_SECONDS = 5;

const refusal = (close: Close, error: AppError): Refusal => ({ close, error });

interface Proven {
  readonly agent: AgentRecord;
  readonly signatureVersion: 1 | 2;
}

const toSessionHello = (session: Session, hello: Hello, { agent, signatureVersion, nodeId }: Proven & { readonly nodeId: string }): SessionHello => ({
  device: { tenantId: session.tenantId, deviceId: session.deviceId },
  nodeId,
  sessionId: session.id,
  instanceId: hello.instanceId ?? null,
  // An empty name is what a released session has, so nobody may claim it.
  handoffFrom: hello.handoffFrom === "" ? null : (hello.handoffFrom ?? null),
  clockOffsetMs: hello.clockOffsetMs ?? null,
  inFlight: hello.inFlight,
  journal: hello.capabilities.includes(JOURNAL),
  listsAll: hello.capabilities.includes(IN_FLIGHT),
  cancels: hello.capabilities.includes(CANCEL),
  maxInFlight: session.maxInFlight,
  locksSignature: signatureVersion === 2 && agent.minSignatureVersion < 2 && hello.capabilities.includes(SECOND_FORM),
  machine: { hostname: hello.hostname, platform: hello.os, arch: hello.arch, agentVersion: hello.agentVersion },
});

export const createHello = ({ agents, sessions, clock, nodeId, rivals, onError }: HelloDeps) => {
  const prove = async ({ agentId, nonce, signatureVersion }: Challenge, { proof }: Hello): Promise<Proven | Refusal> => {
    // Asked anew, since the device may have been removed or its secret replaced after the upgrade.
    const agent = await agents.take(agentId);
    if (agent === null || agent.revoked) return refusal(CLOSE.deviceRevoked, new AppError("FORBIDDEN", { details: { reason: "device_revoked" } }));
    const failed = (reason: string) => refusal(CLOSE.authFailed, new AppError("INVALID_SIGNATURE", { details: { reason } }));
    const timestampMs = parseTimestamp(proof.timestamp);
    if (timestampMs === null) return failed("bad_timestamp");
    const secret = matchSecret(agent, { body: nonce, ...proof });
    if (secret === null) return failed("bad_signature");
    checkVersion(agent, signatureVersion);
    checkSkew(timestampMs, clock.now());
    if (secret === agent.secrets[1]) await agents.promote(agent.agentId, secret);
    return { agent, signatureVersion };
  };

  /** The newcomer stays out whether or not the event could be written. */
  const refuseClone = async (session: Session, hello: SessionHello): Promise<HelloVerdict> => {
    await sessions.reportDuplicate(hello).catch((error: unknown) => onError(error, session));
    return refusal(CLOSE.duplicateIdentity, new AppError("FORBIDDEN", { details: { reason: "duplicate_identity" } }));
  };

  return async (session: Session, hello: Hello): Promise<HelloVerdict> => {
    const { challenge } = session;
    session.challenge = null;
    if (challenge === null) return refusal(CLOSE.authFailed, new AppError("INVALID_SIGNATURE", { details: { reason: "bad_signature" } }));
    try {
      const proof = await prove(challenge, hello);
      if ("close" in proof) return proof;
      const newcomer = toSessionHello(session, hello, { ...proof, nodeId });
      if (await rivals.lives(session, hello)) return await refuseClone(session, newcomer);
      return { begun: await sessions.begin(newcomer) };
    } catch (error) {
      if (isAppError(error) && error.code === "FORBIDDEN") return refusal(CLOSE.deviceRevoked, error);
      if (isAppError(error) && error.code === "INVALID_SIGNATURE") return refusal(CLOSE.authFailed, error);
      return {
        close: CLOSE.tryLater,
        error: new AppError("SERVICE_UNAVAILABLE", { retryAfter: RETRY_SECONDS, cause: error }),
        retryAfterSeconds: RETRY_SECONDS,
      };
    }
  };
};
export type JudgeHello = ReturnType<typeof createHello>;
