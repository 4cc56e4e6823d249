// The types of the rules: a command's changeable state, the events that can happen to it, and the circumstances.

import type { AckStatus, CommandStatus } from "../../../protocol/index.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";

/** Milliseconds since 1970; Infinity is never (SQL: 'infinity'). */
export type Instant = number;

/** The columns that a transition may change. */
export interface CommandState {
  readonly status: CommandStatus;
  /** Null only in a final state. */
  readonly deadlineAt: Instant | null;
  readonly availableAt: Instant;
  readonly attempt: number;
  readonly execDeadlineAt: Instant | null;
  readonly channel: "ws" | "poll" | null;
  readonly sessionEpoch: number | null;
  readonly nodeId: string | null;
  readonly sentAt: Instant | null;
  readonly ackedAt: Instant | null;
  readonly startedAt: Instant | null;
  readonly finishedAt: Instant | null;
  readonly ackStatus: string | null;
  readonly ackAt: Instant | null;
  readonly output: unknown;
  readonly outputTruncated: boolean;
  readonly progress: CommandProgress | null;
  readonly failureCode: string | null;
  readonly cancelRequestedAt: Instant | null;
  readonly cancelReason: string | null;
  readonly cancelPrevStatus: CommandStatus | null;
  readonly late: boolean;
  readonly lateOutcome: Readonly<Record<string, unknown>> | null;
}

/** A row as the rules see it: what may change, and what was fixed at creation. */
export interface CommandFacts extends CommandState {
  readonly requiresAck: boolean;
  readonly redeliverSafe: boolean;
  readonly maxAttempts: number;
  readonly execTimeoutSeconds: number;
  readonly expiresAt: Instant | null;
  /** Epoch of the socket that is open right now, null without one. */
  readonly liveEpoch: number | null;
}

export type Patch = Partial<CommandState>;

export interface CommandProgress {
  readonly pct: number | null;
  readonly message: string | null;
  readonly stage?: string;
  readonly bytesDone?: number;
  readonly bytesTotal?: number;
}

export interface AckEvent {
  readonly kind: "ack";
  readonly word: AckStatus;
  /** As the agent spelled it. */
  readonly raw: string;
  readonly output: unknown;
  readonly outputTruncated: boolean;
  readonly code: string | null;
  readonly progress: CommandProgress | null;
  /** Why the ack was not accepted as it came; the readable part of it still counts. */
  readonly refused: string | null;
}

/** A new session has begun. The agent's capabilities decide what an unlisted command means. */
export interface SettledEvent {
  readonly kind: "settled";
  readonly epoch: number;
  readonly listedAs: AckStatus | "unknown" | null;
  readonly journal: boolean;
  /** It lists every command that it holds. */
  readonly listsAll: boolean;
  /** It can stop a command. */
  readonly cancels: boolean;
  readonly handoff: boolean;
}

/** The session of that epoch (null: no session) has written what it sent and writes before it sends, so what is queued was never sent. */
export interface SettledSession {
  readonly epoch: number | null;
}

export type CommandEvent =
  | {
      readonly kind: "claimed";
      readonly channel: "ws" | "poll";
      readonly epoch: number | null;
      readonly nodeId: string;
      /** When it was sent, if that is told later. */
      readonly at?: Instant;
    }
  | { readonly kind: "refused"; readonly epoch: number }
  | { readonly kind: "written"; readonly epoch: number | null }
  | AckEvent
  | { readonly kind: "deadline" }
  | SettledEvent
  | {
      readonly kind: "cancel";
      readonly reason: string | null;
      readonly force: boolean;
      readonly settled: SettledSession | null;
    }
  | { readonly kind: "reset"; readonly reason: string | null };

/** Everything else that the rules depend on. `now` is the database's. */
export interface Circumstances {
  readonly now: Instant;
  /** Evenly spread in [0, 1): spreads redeliveries. */
  readonly jitter: number;
  readonly timings: Timings;
}

/** Every figure of a deadline; settings.ts has the defaults. */
export interface Timings {
  readonly ackTimeoutMs: number;
  readonly pollLeaseMs: number;
  readonly redeliveryBackoffMs: readonly number[];
  readonly cancelTimeoutMs: number;
  /** Without a time to live, how long a cancellation waits for an absent agent. */
  readonly cancelOfflineMs: number;
  /** Between two signs of progress; null leaves only the execution deadline. */
  readonly stepTimeoutMs: number | null;
  readonly lateWindowMs: number;
}

export interface Step {
  readonly patch: Patch;
  /** For the timeline, and the failure code of final states. */
  readonly code: string | null;
}

export interface AckCall extends DeviceRef {
  readonly commandId: string;
  readonly event: AckEvent;
}
