// The secrets of an agent: the one it signs with, during a rotation the next one, and the one that was replaced last. A gateway whose database was restored
// from a backup knows only the replaced one, and without it every device that has rotated since would need a person.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";

const Stored = z.object({ current: z.string(), next: z.string().nullable(), former: z.string().nullable().default(null), rotating: z.boolean() });
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
  /** The secrets that were refused since one was accepted, or since all were. */
  const refused = new Set<string>();
  const save = (next: Stored): void => {
    keep(next);
    state = next;
  };
  const saveIfPossible = (next: Stored): void => {
    try {
      save(next);
    } catch (error) {
      // On a full disk all are kept, and the next accepted signature tries again.
      if (!(error instanceof Error && "syscall" in error)) throw error;
    }
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
      refused.clear();
    },
    confirmed: (used) => {
      refused.clear();
      // That the old secret is valid says nothing about the new one, which may not have been tried yet.
      if (used === state.next) saveIfPossible({ current: used, next: null, former: state.current, rotating: false });
      else if (used === state.former && used !== state.current) saveIfPossible({ ...state, current: used, former: state.current });
    },
    refused: (used) => {
      if (used !== secret) return true;
      refused.add(used);
      const all = [state.next, state.current, state.former];
      const other = all.find((each): each is string => each !== null && !refused.has(each));
      if (other === undefined) refused.clear();
      secret = other ?? state.next ?? state.current;
      return other !== undefined || state.next !== null;
    },
  };
};

const onlyThis = (secret: string): Stored => ({ current: secret, next: null, former: null, rotating: false });

export const createMemoryKeys = (secret: string): Keys => createKeys(onlyThis(secret), () => undefined);

/** Secrets in one file, which every change replaces atomically. */
export const openFileKeys = (path: string, firstSecret: string): Keys =>
  createKeys(readStored(path) ?? onlyThis(firstSecret), (stored) => replace(path, JSON.stringify(stored)));

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
