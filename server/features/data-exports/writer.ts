// Writes the file of an export: lines, a checksum for each section and for all, a signature, compressed and cut into chunks of one mebibyte.
import { createHash, createHmac } from "node:crypto";
import { createGzip } from "node:zlib";
import type { SecretBox } from "../../platform/keys/secrets.ts";

export const EXPORT_FORMAT = "mooring-export/1";
export const CHUNK_BYTES = 1_048_576;

/** Says that this installation has made a file with this digest. */
export const signatureOf = (key: Uint8Array, digest: string): string => createHmac("sha256", key).update(`${EXPORT_FORMAT}|${digest}`).digest("hex");
export const exportKeys = (secretBox: Pick<SecretBox, "deriveAll">): readonly Uint8Array[] => secretBox.deriveAll("data export");

export interface FileWriterDeps {
  /** Keeps the next chunk; only the last one is shorter. */
  readonly keep: (bytes: Buffer) => Promise<void>;
  readonly key: Uint8Array;
}

export interface WrittenFile {
  readonly sizeBytes: number;
  readonly sha256: string;
}

export const createFileWriter = ({ keep, key }: FileWriterDeps) => {
  const gzip = createGzip();
  const [packed, all] = [createHash("sha256"), createHash("sha256")];
  let section = createHash("sha256");
  let [count, lines, sizeBytes] = [0, 0, 0];
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  gzip.on("data", (bytes: Buffer) => {
    waiting.push(bytes);
    waitingBytes += bytes.length;
  });
  const ended = new Promise<void>((resolve, reject) => gzip.once("end", resolve).once("error", reject));
  ended.catch(() => undefined);

  const keepNext = async (bytes: Buffer): Promise<void> => {
    packed.update(bytes);
    sizeBytes += bytes.length;
    await keep(bytes);
  };
  const keepWhole = async (): Promise<void> => {
    if (waitingBytes < CHUNK_BYTES) return;
    let rest = Buffer.concat(waiting);
    for (; rest.length >= CHUNK_BYTES; rest = rest.subarray(CHUNK_BYTES)) await keepNext(rest.subarray(0, CHUNK_BYTES));
    [waiting, waitingBytes] = [[rest], rest.length];
  };
  const text = async (written: string): Promise<void> => {
    all.update(written);
    await new Promise<void>((resolve, reject) => gzip.write(written, (error) => (error == null ? resolve() : reject(error))));
    await keepWhole();
  };

  return {
    lines: () => lines,
    sizeBytes: () => sizeBytes,
    /** Before the first section. */
    head: text,
    /** Whole lines of the present section. */
    records: async (written: string, records: number): Promise<void> => {
      section.update(written);
      count += records;
      lines += records;
      await text(written);
    },
    /** Closes the section and says how many records it has. `write`: with a line of its own. */
    endSection: async (kind: string, write: boolean): Promise<number> => {
      const [ended, sha256] = [count, section.digest("hex")];
      section = createHash("sha256");
      count = 0;
      if (write) await text(`${JSON.stringify({ kind: "#end", section: kind, count: ended, sha256 })}\n`);
      return ended;
    },
    /** The last line, which signs all before. */
    sign: async (counts: Readonly<Record<string, number>>): Promise<void> => {
      const sha256 = all.copy().digest("hex");
      await text(`${JSON.stringify({ kind: "#manifest-end", counts, sha256, signature: signatureOf(key, sha256) })}\n`);
    },
    finish: async (): Promise<WrittenFile> => {
      gzip.end();
      await ended;
      await keepWhole();
      if (waitingBytes > 0) await keepNext(Buffer.concat(waiting));
      return { sizeBytes, sha256: packed.digest("hex") };
    },
    /** Lets go of a file that nobody wants any more. */
    drop: (): void => void gzip.destroy(),
  };
};
export type FileWriter = ReturnType<typeof createFileWriter>;
