// Seals the calls of a plan, because a document may hold secrets. By a derived key: a plan lives for a day, and after a rotation of the master key
// another one is made.
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { PlannedCall } from "./plan-changes.ts";

export const createLineBox = (secretBox: Pick<SecretBox, "boxFor">) => {
  const box = secretBox.boxFor("import lines");
  const contextOf = (importId: string, n: number): string => `${importId}|${n}`;
  return {
    seal: (calls: readonly PlannedCall[], importId: string, n: number): Uint8Array<ArrayBuffer> | null =>
      calls.length === 0 ? null : box.seal(Buffer.from(JSON.stringify(calls)), contextOf(importId, n)),
    /** Null: sealed with a master key that is gone. */
    open: (sealed: Uint8Array | null, importId: string, n: number): readonly PlannedCall[] | null => {
      if (sealed === null) return [];
      const opened = box.open(sealed, contextOf(importId, n));
      return opened === null ? null : JSON.parse(opened.toString());
    },
  };
};
export type LineBox = ReturnType<typeof createLineBox>;
