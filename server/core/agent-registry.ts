// How the doors know an agent: the directory of agents, used by the signed REST calls and by the socket alike.
import type { AgentId, DeploymentId, DeviceId, TenantId } from "../../protocol/index.ts";

export interface AgentRecord {
  readonly agentId: AgentId;
  readonly deviceId: DeviceId;
  readonly tenantId: TenantId;
  readonly deploymentId: DeploymentId;
  /** The current secret, then a pending one while a rotation waits for its first use. Empty when revoked. */
  readonly secrets: readonly string[];
  /** 2: this agent has shown that it signs by the second form, and the first alone is not taken from it any more. */
  readonly minSignatureVersion: 1 | 2;
  /** The device was removed; its secrets are gone. */
  readonly revoked: boolean;
  readonly tenantStatus: string;
}

/** Answers may be some seconds old on a node that missed the message of a change; a removal or rotation announces itself. */
export interface AgentRegistry {
  /** Null: no such agent. A removed one is found, and says so. */
  find(agentId: string): Promise<AgentRecord | null>;
  /** The same, for whoever asks last: what was remembered is let go, since an agent whose socket is open seldom calls. */
  take(agentId: string): Promise<AgentRecord | null>;
  /** To be called when a signature was good under `secrets[1]`: that secret becomes the current one. Repeating it changes nothing. */
  promote(agentId: string, usedSecret: string): Promise<void>;
  /** Drops what is remembered here; other nodes hear of it over the bus. */
  forget(agentIds: readonly string[]): void;
}
