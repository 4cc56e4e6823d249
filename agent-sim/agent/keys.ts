// The secrets an agent holds: the one it signs with and, during a rotation, the other. Neither is thrown away before the gateway has accepted the new one.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";

const Stored = z.object({ current: z.string(), next: z.string().nullable(), rotating: z.boolean() });
type Stored = z.infer<typeof Stored>;

export interface Keys {
  /** To sign with now. */
  readonly secret: string;
  /** A rotation was begun and has not been brought to its end. */
  readonly rotating: boolean;
  /** Remembered, so that a crash does not forget the rotation. */
  begin(): void;
  /** What the gateway hands out: kept durably beside the old one, and used from now on. The old one again: nothing is being rotated. */
  offer(secret: string): void;
  /** The gateway accepted a signature under this secret. */
  confirmed(secret: string): void;
  /** The gateway did not. True when there is another one to try, which is used from now on. */
  refused(secret: string): boolean;
}

const createKeys = (stored: Stored, keep: (stored: Stored) => void): Keys => {
  let state = stored;
  let secret = stored.next ?? stored.current;
  const become = (next: Stored): void => {
    keep(next);
    state = next;
  };
  return {
    get secret() {
      return secret;
    },
    get rotating() {
      return state.rotating;
    },
    begin: () => become({ ...state, rotating: true }),
    offer: (offered) => {
      const isNew = offered !== state.current;
      become({ ...state, next: isNew ? offered : null, rotating: isNew });
      secret = offered;
    },
    confirmed: (used) => {
      // The old one being good says nothing about the new one: it may not have been tried yet.
      if (used !== state.next) return;
      try {
        become({ current: used, next: null, rotating: false });
      } catch (error) {
        // On a full disk both stay, and the next time it is accepted this is tried again.
        if (!(error instanceof Error && "syscall" in error)) throw error;
      }
    },
    refused: (used) => {
      if (used !== secret || state.next === null) return used !== secret;
      secret = secret === state.next ? state.current : state.next;
      return true;
    },
  };
};

export const createMemoryKeys = (secret: string): Keys => createKeys({ current: secret, next: null, rotating: false }, () => undefined);

/** One file, replaced as a whole: it holds either what was before or what is now. */
export const openFileKeys = (path: string, firstSecret: string): Keys =>
  createKeys(readStored(path) ?? { current: firstSecret, next: null, rotating: false }, (stored) => replace(path, JSON.stringify(stored)));

const readStored = (path: string): Stored | null => {
  try {
    return Stored.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
};

const sync = (path: string): void => {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
};
const replace = (path: string, text: string): void => {
  const next = `${path}.next`;
  writeFileSync(next, text, { mode: 0o600 });
  sync(next);
  renameSync(next, path);
  sync(dirname(path));
};
