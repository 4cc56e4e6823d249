// Takes the file of an import, whole or part by part. What has come is kept, so whoever lost an answer sends the part again.
import { MAX_UPLOAD_BYTES, MAX_UPLOAD_PART_BYTES } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { ImportRow } from "./store.ts";

/** So that a file has no more than some hundred parts. */
const MIN_PART_BYTES = 262_144;

export interface UploadPart {
  readonly from: number;
  /** After the last byte. */
  readonly end: number;
  readonly sizeBytes: number;
}

const refused = (reason: string): AppError => new AppError("IMPORT_UPLOAD_INVALID", { details: { reason } });

/** Where the bytes belong. Throws IMPORT_UPLOAD_INVALID. */
export const uploadPartOf = (contentRange: string | undefined, bytes: number): UploadPart => {
  if (bytes > MAX_UPLOAD_PART_BYTES) throw refused(`a part has ${MAX_UPLOAD_PART_BYTES} bytes at most`);
  if (contentRange === undefined) return { from: 0, end: bytes, sizeBytes: bytes };
  const [, first = "", last = "", size = ""] = /^bytes (\d{1,12})-(\d{1,12})\/(\d{1,12})$/.exec(contentRange) ?? [];
  if (size === "") throw refused("Content-Range must be such as `bytes 0-4194303/9000000`");
  const part: UploadPart = { from: Number(first), end: Number(last) + 1, sizeBytes: Number(size) };
  if (part.sizeBytes > MAX_UPLOAD_BYTES) throw refused(`a file has ${MAX_UPLOAD_BYTES} bytes at most`);
  if (part.end - part.from !== bytes || part.end > part.sizeBytes) throw refused(`Content-Range does not fit a body of ${bytes} bytes`);
  if (bytes < MIN_PART_BYTES && part.end < part.sizeBytes) throw refused(`every part but the last has at least ${MIN_PART_BYTES} bytes`);
  return part;
};

/** Whether the part is the next one. False: it has come before. Throws IMPORT_UPLOAD_OFFSET. */
export const isNextPart = ({ receivedBytes, sizeBytes }: Pick<ImportRow, "receivedBytes" | "sizeBytes">, part: UploadPart): boolean => {
  if (sizeBytes !== null && sizeBytes !== part.sizeBytes) throw refused(`the file has ${sizeBytes} bytes, as an earlier part said`);
  const received = receivedBytes ?? 0;
  if (part.end <= received) return false;
  if (part.from !== received) throw new AppError("IMPORT_UPLOAD_OFFSET", { details: { expected: received } });
  return true;
};
