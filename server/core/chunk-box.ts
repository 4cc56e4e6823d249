// Seals the chunks of a file that lives for days at most, so that whoever reads the database alone reads none of them. By a derived key: after a rotation of
// the master key, an older file is made or sent anew.

/** Boxes by their purposes; what one has sealed opens with the same context alone. */
export interface DerivedBoxes {
  boxFor(purpose: string): {
    seal(bytes: Uint8Array, context: string): Uint8Array<ArrayBuffer>;
    open(sealed: Uint8Array, context: string): Buffer | null;
  };
}

/** A key for the purpose. Each chunk is bound to its file and its place there. */
export const createChunkBox = (derived: DerivedBoxes, purpose: string) => {
  const box = derived.boxFor(purpose);
  const contextOf = (fileId: string, place: number): string => `${fileId}|${place}`;
  return {
    seal: (bytes: Uint8Array, fileId: string, place: number): Uint8Array<ArrayBuffer> => box.seal(bytes, contextOf(fileId, place)),
    /** Null: it was changed, or sealed with a master key that is gone. */
    open: (sealed: Uint8Array, fileId: string, place: number): Buffer | null => box.open(sealed, contextOf(fileId, place)),
  };
};
export type ChunkBox = ReturnType<typeof createChunkBox>;
