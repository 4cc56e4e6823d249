// Sends the file of an export, or a part of it, chunk by chunk.
import type { ChunkBox } from "../../core/chunk-box.ts";
import { CHUNK_BYTES } from "./writer.ts";

export interface ByteRange {
  readonly from: number;
  /** The last byte. */
  readonly to: number;
}

/** Null: the whole file, also for a form that this does not know. `beyond`: it begins behind the end. */
export const rangeOf = (header: string | undefined, sizeBytes: number): ByteRange | "beyond" | null => {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return null;
  if (first === "") return Number(last) === 0 ? "beyond" : { from: Math.max(0, sizeBytes - Number(last)), to: sizeBytes - 1 };
  const from = Number(first);
  const to = last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (last !== "" && Number(last) < from) return null;
  return from >= sizeBytes ? "beyond" : { from, to };
};

export interface ExportFile {
  readonly exportId: string;
  readonly read: (part: number) => Promise<Uint8Array | null>;
  readonly chunkBox: ChunkBox;
  /** A chunk is gone, or sealed with a master key that is. */
  readonly lost: () => Error;
}

export const fileBytes = async function* ({ exportId, read, chunkBox, lost }: ExportFile, { from, to }: ByteRange): AsyncGenerator<Uint8Array> {
  for (let part = Math.floor(from / CHUNK_BYTES); part * CHUNK_BYTES <= to; part += 1) {
    const sealed = await read(part);
    const bytes = sealed === null ? null : chunkBox.open(sealed, exportId, part);
    if (bytes === null) throw lost();
    const at = part * CHUNK_BYTES;
    yield bytes.subarray(Math.max(0, from - at), Math.min(bytes.length, to - at + 1));
  }
};
