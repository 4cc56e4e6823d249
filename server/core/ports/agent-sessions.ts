// The ports between the agent channel and the devices feature: sessions of agents, their presence and their owners.
// A device's epoch only grows, so a write of an older session carries an older epoch and changes nothing.
import type { Close } from "../../../protocol/index.ts";
import type { DeviceRef, Reconciliation, SessionStart } from "./delivery.ts";

/** A hello whose proof is good. */
export interface SessionHello extends Pick<SessionStart, "inFlight" | "journal" | "listsAll" | "cancels"> {
  readonly device: DeviceRef;
  readonly nodeId: string;
  readonly sessionId: string;
  /** Names the agent's process; null when the agent does not name it. */
  readonly instanceId: string | null;
  /** The session that this one continues, according to the agent. */
  readonly handoffFrom: string | null;
  readonly clockOffsetMs: number | null;
  /** The number of commands that this session takes at once. */
  readonly maxInFlight: number;
  /** The agent signs with v2 from now on: refuse v1 signatures of this device. */
  readonly locksSignature: boolean;
  readonly machine: Machine;
}

export interface Machine {
  readonly hostname?: string | undefined;
  readonly platform?: string | undefined;
  readonly arch?: string | undefined;
  readonly osVersion?: string | undefined;
  readonly agentVersion?: string | undefined;
}

export interface SessionBegun {
  readonly epoch: number;
  /** The node of the previous session, if its socket may still be open. */
  readonly previousNodeId: string | null;
  readonly handedOver: boolean;
  /** How often sessions of this device have superseded each other in a row, this one included; 0 if it superseded none. */
  readonly pushedOut: number;
  readonly reconcile: readonly Reconciliation[];
  readonly queuedCount: number;
  /** Call it once `ready` is written. */
  readonly notify: () => void;
}

/** Calls at the same time share a transaction. */
export interface AgentSessions {
  /** In one transaction: raises the epoch, takes presence over, settles the commands of older sessions. Throws FORBIDDEN for a removed device. */
  begin(hello: SessionHello): Promise<SessionBegun>;
  /** The session that has the device's presence as of its node's last flush; null when none has. */
  holder(device: DeviceRef): Promise<Holder | null>;
  /** Emits the event that another running agent uses the newcomer's identity, at most once an hour per device over all nodes. */
  reportDuplicate(newcomer: Pick<SessionHello, "device" | "nodeId" | "machine">): Promise<void>;
}

/** True when a session of the device that belongs to another process answers a ping right now, on any node. */
export type DuplicateProbe = (device: DeviceRef, instanceId: string) => Promise<boolean>;

export interface Holder {
  readonly nodeId: string;
  readonly sessionId: string;
  readonly instanceId: string | null;
  /** Lags by up to one presence flush. */
  readonly seenAgoMs: number;
}

/** The news of one session since the last presence flush. Ages instead of times, because only the database's clock counts. */
export interface PresenceUpdate {
  readonly deviceId: string;
  readonly epoch: number;
  readonly seenAgoMs: number;
  /** After this much silence, counted from the last frame, the device is offline. */
  readonly patienceMs: number;
  readonly heartbeatAgoMs: number | null;
  readonly metrics: Readonly<Record<string, unknown>> | null;
}

export interface SessionRef {
  readonly deviceId: string;
  readonly epoch: number;
}

/** A session with its id. */
export interface HeldSession extends SessionRef {
  readonly id: string;
}

export interface Superseded {
  readonly why: "superseded" | "handedOver" | "removed";
  readonly pushedOut: number;
}

/** The part of a node's sessions whose digest covers this device. */
export const digestPart = (deviceId: string): string => deviceId.slice(-1);

export interface SocketPresence {
  /** Returns the devices whose session is still the newest. */
  flush(updates: readonly PresenceUpdate[]): Promise<ReadonlySet<string>>;
  /** Digests of the sessions that hold presence on this node, by `digestPart`: equal digests mean that none of that part has gained or lost it in between. */
  digests(): Promise<ReadonlyMap<string, string>>;
  /** By device, the sessions that have lost their presence: to a newer session, to a fence, or because the device was removed. */
  superseded(sessions: readonly HeldSession[]): Promise<ReadonlyMap<string, Superseded>>;
  /** Call it before closing sessions whose agents should reconnect. Returns the devices that no session has taken over; none can be handed over later. */
  release(sessions: readonly SessionRef[]): Promise<ReadonlySet<string>>;
  /** The sockets closed without a goodbye: the devices are offline after the grace, unless they have a newer session. */
  closed(sessions: readonly SessionRef[]): Promise<void>;
  /** The agent leaves, with its reason and the time after which it expects to be back. */
  goodbye(session: SessionRef, goodbye: { readonly reason: string; readonly expectBackMs: number }): Promise<void>;
}

/** Knows which node holds a device's socket. Entries are hints that expire: the epoch in the database decides. */
export interface SessionOwners {
  owner(deviceId: string): Promise<string | null>;
  /** Writes or renews the entry, unless it has a newer epoch. */
  claim(deviceId: string, nodeId: string, epoch: number): Promise<void>;
  /** Removes the entry if it still has this epoch. */
  release(deviceId: string, epoch: number): Promise<void>;
  /** Removes the entry if it still names this node, because the node no longer receives messages. */
  disown(deviceId: string, nodeId: string): Promise<void>;
}

/** Closes the device's socket on whichever node holds it. The message may be lost; the next presence flush makes up for it. */
export interface Evictor {
  /** `epochBelow` spares a session with this epoch or a newer one. */
  evict(deviceId: string, order: { readonly close: Close; readonly epochBelow?: number }): void;
}

/** A poll keeps the device online. */
export interface PollPresence {
  /** Throws DUPLICATE_IDENTITY while another process uses this identity. */
  polled(
    device: DeviceRef,
    poll: { readonly instanceId: string | null; readonly formerInstanceId?: string | null | undefined; readonly aliveForMs: number },
  ): Promise<void>;
}
