// Commands of which a session has not heard the end: what a heartbeat does not list of them is asked for again.
import { type AckResult, isOpen } from "../../../protocol/index.ts";
import type { Session } from "./session.ts";

export interface Awaited {
  readonly sinceMs: number;
  readonly asked: number;
}

const NOTHING: readonly string[] = [];
const MAX_AWAITED = 200;
const MAX_RESEND = 50;
/** An agent that never answers does not have the command; the deadlines of the queue take care of that one. */
const MAX_ASKED = 3;

/** It has been written to the agent, or the agent named it in hello. */
export const expectWord = (session: Session, commandId: string, nowMs: number): void => {
  session.awaited ??= new Map();
  const { awaited } = session;
  if (awaited.size < MAX_AWAITED || awaited.has(commandId)) awaited.set(commandId, { sinceMs: nowMs, asked: 0 });
};

export const heard = ({ awaited }: Session, { commandId, status }: AckResult): void => {
  if (status === null || !isOpen(status)) awaited?.delete(commandId);
};

/** What the agent seems not to hold any more although it owes a word about it. What was sent a moment ago may still be on its way. */
export const missing = (
  { awaited }: Session,
  listed: readonly string[],
  { nowMs, afterMs }: { readonly nowMs: number; readonly afterMs: number },
): readonly string[] => {
  if (awaited === null || awaited.size === 0) return NOTHING;
  const held = new Set(listed);
  const due = [...awaited]
    .filter(([commandId, { sinceMs, asked }]) => !held.has(commandId) && nowMs - sinceMs >= afterMs && asked < MAX_ASKED)
    .slice(0, MAX_RESEND);
  for (const [commandId, { sinceMs, asked }] of due) awaited.set(commandId, { sinceMs, asked: asked + 1 });
  return due.map(([commandId]) => commandId);
};
