// The timing wheel of quiet sessions: each waits for the second in which its silence or its age may end it, so a tick costs what is due, not what is open.
import type { AgentSession } from "./session.ts";

const SECOND = 1_000;

export const createSessionWheel = () => {
  const waiting = new Map<number, Set<AgentSession>>();
  /** Seconds up to this one are over. */
  let past = -1;

  const remove = (session: AgentSession): void => {
    const { lookAt } = session;
    if (lookAt === null) return;
    const others = waiting.get(lookAt);
    others?.delete(session);
    if (others?.size === 0) waiting.delete(lookAt);
    session.lookAt = null;
  };

  return {
    /** `take` returns the session at this time or a little before. A session that waits for an earlier time keeps it. */
    add: (session: AgentSession, atMs: number): void => {
      const second = Math.max(Math.floor(atMs / SECOND), past + 1);
      if (session.lookAt !== null && session.lookAt <= second) return;
      remove(session);
      session.lookAt = second;
      const others = waiting.get(second);
      if (others === undefined) waiting.set(second, new Set([session]));
      else others.add(session);
    },
    remove,
    /** The sessions whose time has come. */
    take: (nowMs: number): readonly AgentSession[] => {
      const second = Math.floor(nowMs / SECOND);
      const due = [...waiting].flatMap(([at, sessions]) => (at <= second ? [...sessions] : []));
      for (const session of due) remove(session);
      past = second;
      return due;
    },
  };
};
export type SessionWheel = ReturnType<typeof createSessionWheel>;
