// The life of one process of a simulated agent. After its end nothing that its work still does is stored or told, as if the process had been killed.
import { CannotWrite, type CommandHandlers, type Journal, noop } from "../agent/index.ts";
import type { BackupMemory } from "../host/backups/simulated-engine.ts";
import { HostClosed } from "../host/host.ts";

export interface Lifetime {
  /** The same journal, until the end. */
  journal(kept: Journal): Journal;
  /** The same memory, until the end. */
  memory(kept: BackupMemory): BackupMemory;
  /** What runs at the end never tells how it ended. */
  handlers(all: CommandHandlers): CommandHandlers;
  end(): void;
}

export const createLifetime = (): Lifetime => {
  let isOver = false;
  const never = new Promise<never>(noop);
  return {
    journal: (kept) => ({
      ...kept,
      begin: (...record) => {
        if (isOver) throw new CannotWrite("the agent was killed");
        return kept.begin(...record);
      },
    }),
    memory: (kept) => ({
      get: kept.get,
      put: (next) => {
        if (isOver) throw new HostClosed();
        kept.put(next);
      },
    }),
    handlers: (all) =>
      Object.fromEntries(
        Object.entries(all).map(([type, handler]) => [
          type,
          {
            ...handler,
            run: async (payload, context) => {
              const told = { ...context, progress: (...figures) => (isOver ? undefined : context.progress(...figures)) } satisfies typeof context;
              try {
                return await handler.run(payload, told);
              } finally {
                if (isOver) await never;
              }
            },
          } satisfies CommandHandlers[string],
        ]),
      ),
    end: () => {
      isOver = true;
    },
  };
};
