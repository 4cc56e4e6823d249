// The id of this process, and of the one before it: whoever holds the lock of the state knows that it has ended, unless the disk came from another machine.
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";

const Kept = z.object({ instanceId: z.string().min(1).max(64), bootId: z.string() });

export interface Instances {
  readonly instanceId: string;
  /** Undefined unless it ran since the last start of this machine, which a copy of the disk does not share. */
  readonly formerInstanceId: string | undefined;
  /** The gateway answered a poll of this process: the next one may name it. */
  polled(): void;
}

const readKept = (path: string): z.infer<typeof Kept> | null => {
  try {
    return Kept.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    // Without it the agent waits until its predecessor no longer counts as alive.
    return null;
  }
};

/** Call it while the lock of the state is held. */
export const succeedInstance = (path: string, bootId: string): Instances => {
  const former = readKept(path);
  const instanceId = randomUUID();
  let isKept = false;
  return {
    instanceId,
    formerInstanceId: former?.bootId === bootId ? former.instanceId : undefined,
    polled: () => {
      if (isKept) return;
      isKept = true;
      try {
        writeFileSync(path, JSON.stringify({ instanceId, bootId }), { mode: 0o600 });
      } catch (error) {
        // On a full disk the next process waits.
        if (!(error instanceof Error && "syscall" in error)) throw error;
      }
    },
  };
};
