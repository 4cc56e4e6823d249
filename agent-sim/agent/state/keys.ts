// The secrets of an agent: the one it signs with and, during a rotation, the other. It keeps both until the gateway has accepted the new one.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";

const Stored = z.object({ current: z.string(), next: z.string().nullable(), rotating: z.boolean() });
type Stored = z.infer<typeof Stored>;

export interface Keys {
  /** The secret to sign with now. */
  readonly secret: string;
  /** A rotation has begun and not ended. */
  readonly rotating: boolean;
  /** Records durably that a rotation has begun, so that it survives a crash. */
  begin(): void;
  /** Stores the new secret durably beside the old one and uses it from now on. If it equals the old one, there is no rotation. */
  offer(secret: string): void;
  /** The gateway accepted a signature under this secret. */
  confirmed(secret: string): void;
  /** The gateway refused this secret. True if there is another one to try, which is used from now on. */
  refused(secret: string): boolean;
}

const createKeys = (stored: Stored, keep: (stored: Stored) => void): Keys => {
  let state = stored;
  let secret = stored.next ?? stored.current;
  const save = (next: Stored): void => {
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
    begin: () => save({ ...state, rotating: true }),
    offer: (offered) => {
      const isNew = offered !== state.current;
      save({ ...state, next: isNew ? offered : null, rotating: isNew });
      secret = offered;
    },
    confirmed: (used) => {
      // That the old secret is valid says nothing about the new one, which may not have been tried yet.
      if (used !== state.next) return;
      try {
        save({ current: used, next: null, rotating: false });
      } catch (error) {
        // On a full disk both are kept, and the next accepted signature tries again.
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

/** Secrets in one file, which every change replaces atomically. */
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
