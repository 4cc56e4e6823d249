// Seals the chunks of exports, so that whoever reads the database alone reads none of them. By a derived key: a file lives for days, and after a rotation
// of the master key an older one is made anew.
import type { SecretBox } from "../../platform/keys/secrets.ts";

export const createChunkBox = (secretBox: Pick<SecretBox, "boxFor">) => {
  const box = secretBox.boxFor("data export chunks");
  const contextOf = (exportId: string, part: number): string => `${exportId}|${part}`;
  return {
    seal: (bytes: Uint8Array, exportId: string, part: number): Uint8Array<ArrayBuffer> => box.seal(bytes, contextOf(exportId, part)),
    /** Null: it was changed, or sealed with a master key that is gone. */
    open: (sealed: Uint8Array, exportId: string, part: number): Buffer | null => box.open(sealed, contextOf(exportId, part)),
  };
};
export type ChunkBox = ReturnType<typeof createChunkBox>;
