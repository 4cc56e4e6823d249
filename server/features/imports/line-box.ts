// Seals the calls of a plan, because a document may hold secrets. By a derived key: a plan lives for a day, and after a rotation of the master key
// another one is made.
import { createChunkBox, type DerivedBoxes } from "../../core/chunk-box.ts";
import type { PlannedCall } from "./plan-changes.ts";

export const createLineBox = (derived: DerivedBoxes) => {
  const box = createChunkBox(derived, "import lines");
  return {
    seal: (calls: readonly PlannedCall[], importId: string, n: number): Uint8Array<ArrayBuffer> | null =>
      calls.length === 0 ? null : box.seal(Buffer.from(JSON.stringify(calls)), importId, n),
    /** Null: sealed with a master key that is gone. */
    open: (sealed: Uint8Array | null, importId: string, n: number): readonly PlannedCall[] | null => {
      if (sealed === null) return [];
      const opened = box.open(sealed, importId, n);
      return opened === null ? null : JSON.parse(opened.toString());
    },
  };
};
export type LineBox = ReturnType<typeof createLineBox>;
