// Reads the WebSocket frames in the proxy and drops some, so that a single message can be lost on a living connection.
import type { ByteFilter, Direction } from "./proxy.ts";

const TEXT_AND_LAST = 0x81;
const HEADER_END = "\r\n\r\n";

interface Frame {
  readonly bytes: number;
  readonly text: string | null;
}

/** The first frame of the buffer, or null while it is incomplete. */
export const readTextFrame = (buffer: Buffer): Frame | null => {
  const [first, second] = buffer;
  if (first === undefined || second === undefined) return null;
  const masked = (second & 0x80) !== 0;
  const short = second & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const start = 2 + lengthBytes + (masked ? 4 : 0);
  if (buffer.length < start) return null;
  const length = short === 126 ? buffer.readUInt16BE(2) : short === 127 ? Number(buffer.readBigUInt64BE(2)) : short;
  if (buffer.length < start + length) return null;
  if (first !== TEXT_AND_LAST) return { bytes: start + length, text: null };
  const payload = Buffer.from(buffer.subarray(start, start + length));
  const mask = buffer.subarray(start - 4, start);
  if (masked) for (let n = 0; n < payload.length; n += 1) payload[n] = (payload[n] ?? 0) ^ (mask[n & 3] ?? 0);
  return { bytes: start + length, text: payload.toString("utf8") };
};

/** Drops each text message for which `keep` returns false. Plain HTTP and control frames pass unchanged. */
export const frameFilter =
  (keep: (direction: Direction, text: string) => boolean): (() => ByteFilter) =>
  () => {
    const rest: Record<Direction, Buffer> = { up: Buffer.alloc(0), down: Buffer.alloc(0) };
    const upgraded: Record<Direction, boolean> = { up: false, down: false };
    let plain = false;
    return (direction, chunk) => {
      if (plain) return chunk;
      let buffer = Buffer.concat([rest[direction], chunk]);
      const out: Buffer[] = [];
      if (!upgraded[direction]) {
        const end = buffer.indexOf(HEADER_END);
        if (end < 0) {
          rest[direction] = buffer;
          return Buffer.alloc(0);
        }
        const head = buffer.subarray(0, end + HEADER_END.length);
        if (!/upgrade: *websocket/i.test(head.toString("latin1"))) {
          plain = true;
          return buffer;
        }
        upgraded[direction] = true;
        out.push(head);
        buffer = buffer.subarray(head.length);
      }
      for (let frame = readTextFrame(buffer); frame; frame = readTextFrame(buffer)) {
        if (frame.text === null || keep(direction, frame.text)) out.push(buffer.subarray(0, frame.bytes));
        buffer = buffer.subarray(frame.bytes);
      }
      rest[direction] = buffer;
      return Buffer.concat(out);
    };
  };
