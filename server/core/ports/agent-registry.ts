// The registry in which signed REST calls and the agent socket find an agent's credentials.
import type { AgentId, DeploymentId, DeviceId, TenantId } from "../../../protocol/index.ts";

export interface AgentRecord {
  readonly agentId: AgentId;
  readonly deviceId: DeviceId;
  readonly tenantId: TenantId;
  readonly deploymentId: DeploymentId;
  /** The current secret, then a pending one while a rotation waits for its first use. Empty when revoked. */
  readonly secrets: readonly string[];
  /** 2: this agent has shown that it signs with v2, and the gateway no longer accepts v1 alone from it. */
  readonly minSignatureVersion: 1 | 2;
  /** The device was removed; its secrets are gone. */
  readonly revoked: boolean;
  readonly tenantStatus: string;
}

/** Answers may be some seconds old on a node that missed the message about a change, such as a removal or a rotation. */
export interface AgentRegistry {
  /** Null: no such agent. Finds a removed one too, marked `revoked`. */
  find(agentId: string): Promise<AgentRecord | null>;
  /** Finds the record, at most seconds old, and forgets it: an agent whose socket is open seldom calls. */
  take(agentId: string): Promise<AgentRecord | null>;
  /** Keeps the record of an agent that this node has let in or has just lost, because it is likely to come back. */
  remember(record: AgentRecord): void;
  /** A record kept by `remember` or `expect`, without a read. It may be minutes old on a node that missed the message about a change: do not refuse by it. */
  recall(agentId: string): AgentRecord | null;
  /** Reads and remembers the agents of these devices. */
  expect(deviceIds: readonly string[]): Promise<void>;
  /** Call it when a signature was good under `secrets[1]`: that secret becomes the current one. Repeating it changes nothing. */
  promote(agentId: string, usedSecret: string): Promise<void>;
  /** Drops this node's cached records. */
  forget(agentIds: readonly string[]): void;
}
