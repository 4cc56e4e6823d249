// Admission of upgrades: which agents may open a socket. Cheap and general checks run first, the connect limiter after the signature; each refusal
// names its reason.

import { CLOSE, HEADERS, parseTimestamp } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { AgentRecord, AgentRegistry } from "../../core/ports/agent-registry.ts";
import type { TenantLookup } from "../../core/ports/lookups.ts";
import type { SignatureMemory } from "../../core/ports/signature-memory.ts";
import type { TenantFacts } from "../../core/scope.ts";
import { type AgentCredential, aheadMs, checkSkew, checkVersion, concernedDevice, matchCredential, versionOf } from "../auth/agent.ts";
import { readCredential } from "../auth/credentials.ts";
import { NOWHERE } from "../call/signature-replay.ts";
import { handshakeFault } from "../http/handshake.ts";
import type { HttpRequest } from "../http/http-message.ts";
import { headFault } from "../http/request-head.ts";
import { limitAddress } from "../http/request-info.ts";
import { createCapacity, type NodeOccupancy } from "./capacity.ts";
import { type ConnectLimiter, createConnectLimiter } from "./rate-limits.ts";
import { secondsWithin } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";

export interface AdmissionDeps {
  readonly agents: Pick<AgentRegistry, "find" | "promote" | "remember" | "recall">;
  readonly tenants: TenantLookup;
  /** Shared with REST: a signature that opened a socket cannot be used for a call, nor the other way round. */
  readonly signatures: SignatureMemory;
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  /** What is wrong with the handshake; default: with that of a WebSocket of the channel. */
  readonly handshakeFault?: (request: HttpRequest) => AppError | null;
}

export interface Admitted {
  readonly agent: AgentRecord;
  readonly tenant: TenantFacts;
  /** The version of the signature that opened the socket. */
  readonly signatureVersion: 1 | 2;
  /** The other nodes are still being asked about the signature: null once it was new to them, or the refusal. */
  readonly replayed: Promise<AppError | null> | null;
}

interface At {
  readonly ip: string;
  readonly sessionId: string;
  readonly node: NodeOccupancy;
}

export interface SocketAdmission {
  /** Throws AppError. */
  admit(request: HttpRequest, at: At): Promise<Admitted>;
  /**
   * Decides at once about an agent that this node remembers; null if it cannot let the agent in, then `admit` decides. Throws AppError.
   * What it remembers may be old, so it refuses nobody for it, and hello checks the agent again. A replay of an upgrade to another node meets a node that
   * does not remember the agent, unless the agent has just moved; then `replayed` tells, before any hello is accepted.
   */
  admitRemembered(request: HttpRequest, at: At): Admitted | null;
}

interface Proof {
  readonly agent: AgentRecord;
  readonly secret: string;
  readonly credential: AgentCredential;
  readonly signatureVersion: 1 | 2;
}

const MAX_KEYS = 50_000;
const EMPTY = "";
const unauthorized = (reason: string): AppError => new AppError("UNAUTHORIZED", { details: { reason } });
const invalid = (reason: string, agent: AgentRecord | null = null): AppError =>
  new AppError("INVALID_SIGNATURE", { details: { reason }, about: concernedDevice(agent) });
const tooMany = (bucket: string, limit: number | null, retryAfter: number): AppError =>
  new AppError("RATE_LIMIT_EXCEEDED", { details: { bucket, limit, windowSeconds: 60 }, retryAfter });
const forbidden = (reason: string): AppError => new AppError("FORBIDDEN", { details: { reason } });

/** No two upgrades have the same place. */
const placeOf = ({ path }: HttpRequest, sessionId: string): string => `GET ${path}#${sessionId}`;

const readAgent = (request: HttpRequest): AgentCredential => {
  const credential = readCredential(request);
  if (credential.kind !== "agent") throw unauthorized("missing_header");
  return credential;
};

const checkRequest = (request: HttpRequest, faultOf: (request: HttpRequest) => AppError | null): void => {
  const fault = headFault(request) ?? faultOf(request);
  if (fault !== null) throw fault;
  // Only browsers send an Origin: a web page is trying to use the network of its visitor.
  if (request.headers["origin"] !== undefined) throw forbidden("origin_not_allowed");
};

export const createAdmission = ({ agents, tenants, signatures, clock, settings, ...deps }: AdmissionDeps): SocketAdmission => {
  const faultOf = deps.handshakeFault ?? handshakeFault;
  const capacity = createCapacity(settings, clock.elapsed());
  const { connectsPerMinute, connectBurst, failuresPerMinute, failureBurst } = settings;
  const limiterOf = (perMinute: number | null, burst: number): ConnectLimiter | null =>
    perMinute === null ? null : createConnectLimiter(clock, { perMinute, burst, maxKeys: MAX_KEYS });
  const failures = limiterOf(failuresPerMinute, failureBurst);
  const connects = limiterOf(connectsPerMinute, connectBurst);

  const checkCapacity = (node: NodeOccupancy): void => {
    const refusal = capacity.take(node, clock.elapsed());
    if (refusal === null) return;
    const { reason, retryAfter } = refusal;
    throw reason === "draining" ? new AppError("NODE_DRAINING", { retryAfter }) : new AppError("SERVICE_UNAVAILABLE", { retryAfter, details: { reason } });
  };

  const proveBy = (credential: AgentCredential, timestampMs: number, agent: AgentRecord | null): Proof => {
    const secret = matchCredential(agent, credential, EMPTY);
    if (agent === null) throw unauthorized("unknown_agent");
    // The secrets were removed with the device, so no signature can be checked; its id is enough for this answer.
    if (agent.revoked) throw forbidden("device_revoked");
    if (secret === null) throw invalid("bad_signature", agent);
    const signatureVersion = versionOf(credential);
    checkVersion(agent, signatureVersion);
    checkSkew(timestampMs, clock.now(), aheadMs(credential));
    return { agent, secret, credential, signatureVersion };
  };

  const prove = async (request: HttpRequest): Promise<Proof> => {
    const credential = readAgent(request);
    const timestampMs = parseTimestamp(credential.timestamp);
    if (timestampMs === null) throw invalid("bad_timestamp");
    const found = await agents.find(credential.agentId);
    return proveBy(credential, timestampMs, found?.tenantId === credential.tenantId ? found : null);
  };

  // Counts failures only, so hundreds of devices behind one address can connect whatever one of them does.
  const proveCounted = async (request: HttpRequest, ip: string): Promise<Proof> => {
    try {
      return await prove(request);
    } catch (error) {
      const wait = error instanceof AppError && error.status === 401 ? (failures?.take(limitAddress(ip)) ?? 0) : 0;
      throw wait === 0 ? error : tooMany("connect.failures", failuresPerMinute, wait);
    }
  };

  /** The proof of an agent that this node remembers; null whenever anything is not as expected, for the other way to judge from what the database says. */
  const proveRemembered = (request: HttpRequest): (Proof & { readonly tenant: TenantFacts }) | null => {
    const agent = agents.recall(request.headers[HEADERS.agentId] ?? "");
    const tenant = agent === null ? null : tenants.peek(agent.tenantId);
    if (agent === null || tenant?.status !== "active") return null;
    try {
      checkRequest(request, faultOf);
      const credential = readAgent(request);
      const timestampMs = parseTimestamp(credential.timestamp);
      if (timestampMs === null || credential.tenantId !== agent.tenantId) return null;
      const proof = proveBy(credential, timestampMs, agent);
      return proof.secret === agent.secrets[0] ? { ...proof, tenant } : null;
    } catch {
      return null;
    }
  };

  // Keyed by the device id, a string that the session keeps anyway.
  const limitConnects = ({ deviceId }: AgentRecord): void => {
    const wait = connects?.take(deviceId) ?? 0;
    if (wait > 0) throw tooMany("connect", connectsPerMinute, wait);
  };

  return {
    admitRemembered: (request, { sessionId, node }) => {
      const proof = proveRemembered(request);
      if (proof === null) return null;
      const { agent, tenant, credential, signatureVersion } = proof;
      checkCapacity(node);
      limitConnects(agent);
      const place = placeOf(request, sessionId);
      const { signature, v2 } = credential;
      const claim = (used: string) => signatures.claim(`${agent.agentId}:${used}`, place, NOWHERE);
      const { first, shared } = claim(v2?.nonce ?? signature);
      if (v2 !== null) claim(signature);
      if (first !== place) throw invalid("replayed", agent);
      return { agent, tenant, signatureVersion, replayed: shared?.then((found) => (found === place ? null : invalid("replayed", agent))) ?? null };
    },
    admit: async (request, { ip, sessionId, node }) => {
      checkCapacity(node);
      checkRequest(request, faultOf);
      const { agent, secret, credential, signatureVersion } = await proveCounted(request, ip);
      limitConnects(agent);
      // Binds the signature to this session; a signature that is bound elsewhere is a replay.
      const place = placeOf(request, sessionId);
      const { signature, v2 } = credential;
      const bind = (used: string): Promise<string> => signatures.bind(`${agent.agentId}:${used}`, place, NOWHERE);
      const [first] = await Promise.all(v2 === null ? [bind(signature)] : [bind(v2.nonce), bind(signature)]);
      if (first !== place) throw invalid("replayed", agent);
      const tenant = await tenants.find(agent.tenantId);
      if (tenant === null) throw unauthorized("unknown_agent");
      if (tenant.status !== "active")
        throw new AppError("TENANT_SUSPENDED", { details: { reason: "tenant_suspended" }, retryAfter: secondsWithin(CLOSE.tenantSuspended.waitSec) });
      if (secret === agent.secrets[1]) await agents.promote(agent.agentId, secret);
      else agents.remember(agent);
      return { agent, tenant, signatureVersion, replayed: null };
    },
  };
};
