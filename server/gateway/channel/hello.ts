// The handshake on an open socket: the gateway welcomes the agent with a nonce and judges its hello. First the proof, then whether another living agent
// uses the same identity, then the epoch. A hello without a good proof changes nothing.
import type { z } from "zod";
import { CAPABILITIES, CLOSE, type Close, type Hello, parseTimestamp, type SecurityEventType, SUBPROTOCOL, type Welcome } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import type { AgentRecord, AgentRegistry } from "../../core/ports/agent-registry.ts";
import type { AgentSessions, SessionBegun, SessionHello } from "../../core/ports/agent-sessions.ts";
import type { SecurityWatch } from "../../core/ports/security.ts";
import { checkSkew, checkVersion, matchSecret } from "../auth/agent.ts";
import type { DuplicateProbes } from "./duplicate-probe.ts";
import { type HeartbeatPacing, heartbeatPlan } from "./heartbeat-pacing.ts";
import { type AgentSession, type Challenge, send } from "./session.ts";
import { type ChannelSettings, reconnectWindowMs } from "./settings.ts";

export interface WelcomeDeps {
  readonly pacing: Pick<HeartbeatPacing, "start">;
  /** The load of all nodes; without it agents reconnect within the window of the settings. */
  readonly cluster?: (() => ClusterLoad) | undefined;
  readonly clock: Clock;
  readonly settings: ChannelSettings;
}

export interface ClusterLoad {
  readonly connections: number;
  readonly liveNodes: number;
}

/** Sends `welcome`: the nonce that hello must sign, and every figure that the agent needs. */
export const createWelcome = ({ pacing, cluster, clock, settings }: WelcomeDeps): ((session: AgentSession) => void) => {
  const { maxFrameBytes, maxOutputBytes, maxInFlight, inboundPerSecond } = settings;
  const welcomeOf = (session: AgentSession): z.output<typeof Welcome> => {
    const load = cluster?.();
    return {
      protocol: SUBPROTOCOL,
      sessionId: session.id,
      nonce: session.challenge?.nonce ?? "",
      serverTime: clock.now().toISOString(),
      capabilities: [...CAPABILITIES],
      heartbeat: heartbeatPlan(pacing.start(session), settings),
      ack: settings.ack,
      limits: { maxFrameBytes, maxOutputBytes, maxInFlight, inboundPerSec: inboundPerSecond },
      reconnect: { ...settings.reconnect, firstWindowMs: load === undefined ? settings.reconnect.firstWindowMs : reconnectWindowMs(load, settings) },
      poll: { intervalSec: settings.pollSeconds, safetySec: settings.safetyPollSeconds },
      sessionMaxAgeSec: Math.round(session.maxAgeMs / 1_000),
    };
  };
  return (session) => void send(session, { op: "welcome", data: welcomeOf(session) }, clock);
};

export interface HelloJudgeDeps {
  readonly agents: Pick<AgentRegistry, "take" | "promote">;
  readonly sessions: Pick<AgentSessions, "begin" | "reportDuplicate">;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly duplicates: Pick<DuplicateProbes, "isDuplicate">;
  readonly watch: SecurityWatch;
  readonly onError: (error: unknown, session: AgentSession) => void;
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

const toSessionHello = (session: AgentSession, hello: Hello, { agent, signatureVersion, nodeId }: Proven & { readonly nodeId: string }): SessionHello => ({
  device: { tenantId: session.tenantId, deviceId: session.deviceId },
  nodeId,
  sessionId: session.id,
  instanceId: hello.instanceId ?? null,
  // Released sessions have the empty name, so a hello must not continue one by it.
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

export const createHelloJudge = ({ agents, sessions, clock, nodeId, duplicates, watch, onError }: HelloJudgeDeps) => {
  const noteDevice = ({ tenantId, deviceId, ip }: AgentSession, type: SecurityEventType, reason: string): void =>
    watch.note({ type, tenantId, entityType: "device", entityId: deviceId, ipAddress: ip, reason });

  const prove = async (session: AgentSession, { agentId, nonce, signatureVersion }: Challenge, { proof }: Hello): Promise<Proven | Refusal> => {
    // Read again: the device may have been removed, or its secret replaced, since the upgrade.
    const agent = await agents.take(agentId);
    if (agent === null || agent.revoked) return refusal(CLOSE.deviceRevoked, new AppError("FORBIDDEN", { details: { reason: "device_revoked" } }));
    const refuseProof = (reason: string) => {
      noteDevice(session, "signature.invalid_burst", reason);
      return refusal(CLOSE.authFailed, new AppError("INVALID_SIGNATURE", { details: { reason } }));
    };
    const timestampMs = parseTimestamp(proof.timestamp);
    if (timestampMs === null) return refuseProof("bad_timestamp");
    const secret = matchSecret(agent, { body: nonce, ...proof });
    if (secret === null) return refuseProof("bad_signature");
    checkVersion(agent, signatureVersion);
    checkSkew(timestampMs, clock.now());
    if (secret === agent.secrets[1]) await agents.promote(agent.agentId, secret);
    return { agent, signatureVersion };
  };

  /** Refuses the newcomer even if its event cannot be written. */
  const refuseClone = async (session: AgentSession, hello: SessionHello): Promise<HelloVerdict> => {
    noteDevice(session, "device.cloned", "duplicate_identity");
    await sessions.reportDuplicate(hello).catch((error: unknown) => onError(error, session));
    return refusal(CLOSE.duplicateIdentity, new AppError("FORBIDDEN", { details: { reason: "duplicate_identity" } }));
  };

  return async (session: AgentSession, hello: Hello): Promise<HelloVerdict> => {
    const { challenge } = session;
    session.challenge = null;
    if (challenge === null) return refusal(CLOSE.authFailed, new AppError("INVALID_SIGNATURE", { details: { reason: "bad_signature" } }));
    // A replayer of an upgrade cannot sign its nonce either; this keeps the session from one who can.
    const replayed = challenge.replayed === null ? null : await challenge.replayed;
    if (replayed !== null) return refusal(CLOSE.tryLater, replayed);
    try {
      const proof = await prove(session, challenge, hello);
      if ("close" in proof) return proof;
      const newcomer = toSessionHello(session, hello, { ...proof, nodeId });
      if (await duplicates.isDuplicate(session, hello)) return await refuseClone(session, newcomer);
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
export type JudgeHello = ReturnType<typeof createHelloJudge>;
