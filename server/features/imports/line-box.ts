// Seals what an import keeps of its document, which may hold secrets: the parts of its file, and the calls of its plan. By derived keys: both live for a day,
// and after a rotation of the master key another import is made.
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

export const createPartBox = (secretBox: Pick<SecretBox, "boxFor">) => {
  const box = secretBox.boxFor("import parts");
  const contextOf = (importId: string, from: number): string => `${importId}|${from}`;
  return {
    seal: (bytes: Uint8Array, importId: string, from: number): Uint8Array<ArrayBuffer> => box.seal(bytes, contextOf(importId, from)),
    /** Null: sealed with a master key that is gone. */
    open: (sealed: Uint8Array, importId: string, from: number): Buffer | null => box.open(sealed, contextOf(importId, from)),
  };
};
export type PartBox = ReturnType<typeof createPartBox>;
