// What the agent channel asks of presence: who is connected, since when, and what to do with those who left.
// A device's epoch only grows; whatever an older session writes carries its own epoch and so changes nothing.
import type { Close } from "../../protocol/index.ts";
import type { DeviceRef, Reconciliation, SessionStart } from "./delivery.ts";

/** What a proven hello says about the session and its machine. */
export interface SessionHello extends Pick<SessionStart, "inFlight" | "journal" | "listsAll" | "cancels"> {
  readonly device: DeviceRef;
  readonly nodeId: string;
  readonly sessionId: string;
  /** Of the agent's process; null when it does not say. */
  readonly instanceId: string | null;
  /** The session that this one continues, as the agent names it. */
  readonly handoffFrom: string | null;
  readonly clockOffsetMs: number | null;
  /** As many commands as this session takes at once. */
  readonly maxInFlight: number;
  /** The agent signs by the second form from now on: the first alone is not to be taken from it again. */
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
  /** The node that held the session before, when it may still hold it. */
  readonly previousNodeId: string | null;
  readonly handedOver: boolean;
  /** How often sessions of this device have pushed each other out in a row, this one included; 0 when it pushed nobody out. */
  readonly pushedOut: number;
  readonly reconcile: readonly Reconciliation[];
  readonly queuedCount: number;
  /** Call it once `ready` is written. */
  readonly notify: () => void;
}

/** Batched inside. */
export interface Sessions {
  /** In one transaction: raises the epoch, takes presence over, settles what older sessions left open. Throws FORBIDDEN for a removed device. */
  begin(hello: SessionHello): Promise<SessionBegun>;
  /** Who has the device's presence now, as far as its node has told; null when nobody has. */
  holder(device: DeviceRef): Promise<Holder | null>;
  /** Somebody else lives with the newcomer's identity. Told as an event, at most once an hour per device over all nodes. */
  reportDuplicate(newcomer: Pick<SessionHello, "device" | "nodeId" | "machine">): Promise<void>;
}

/** Whether a session of the device answers right now, on whichever node, that belongs to another process than this one. */
export type DuplicateProbe = (device: DeviceRef, instanceId: string) => Promise<boolean>;

export interface Holder {
  readonly nodeId: string;
  readonly sessionId: string;
  readonly instanceId: string | null;
  /** Late by up to a flush of presence. */
  readonly seenAgoMs: number;
}

/** The newest news of one session since the last flush. Ages instead of times, because only the database's clock counts. */
export interface Beat {
  readonly deviceId: string;
  readonly epoch: number;
  readonly seenAgoMs: number;
  /** Silence, counted from then on, that makes the device offline. */
  readonly patienceMs: number;
  readonly heartbeatAgoMs: number | null;
  readonly metrics: Readonly<Record<string, unknown>> | null;
}

export interface SessionRef {
  readonly deviceId: string;
  readonly epoch: number;
}

/** A session with its own name. */
export interface HeldSession extends SessionRef {
  readonly id: string;
}

export interface Superseded {
  readonly why: "superseded" | "handedOver" | "removed";
  readonly pushedOut: number;
}

export interface SocketPresence {
  /** The devices whose session is still the newest; the others' sockets belong closed with 4009. */
  flush(beats: readonly Beat[]): Promise<ReadonlySet<string>>;
  /** By device, those of the sessions whose presence is no longer theirs: a newer one stands or it was taken from them, or the device was removed. */
  superseded(sessions: readonly HeldSession[]): Promise<ReadonlyMap<string, Superseded>>;
  /** Before these sessions are closed for their agents to come back: the devices that no other session has taken over by now, and none will as a handoff. */
  release(sessions: readonly SessionRef[]): Promise<ReadonlySet<string>>;
  /** The sockets are gone without a word: offline after the grace, unless a newer session stands. */
  closed(sessions: readonly SessionRef[]): Promise<void>;
  /** The agent said that it leaves, why, and when it expects to be back. */
  goodbye(session: SessionRef, farewell: { readonly reason: string; readonly expectBackMs: number }): Promise<void>;
}

/** A hint to whichever node holds the socket. `epochBelow` spares a session that is newer than what is meant. */
export interface Evictor {
  evict(deviceId: string, order: { readonly close: Close; readonly epochBelow?: number }): void;
}
