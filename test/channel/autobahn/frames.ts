// WebSocket frames as bytes, written without any rule that would keep a client from writing bad ones, and read with every rule for a server's.

export const OP = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
  readonly fin: boolean;
  /** Three bits, 4 being RSV1. */
  readonly rsv: number;
}

export const frame = (opcode: number, payload: Buffer | string = "", { fin = true, rsv = 0 } = {}): Frame => ({
  opcode,
  payload: typeof payload === "string" ? Buffer.from(payload) : payload,
  fin,
  rsv,
});

export const closeFrame = (code: number | null, reason: Buffer | string = ""): Frame => {
  if (code === null) return frame(OP.close);
  const head = Buffer.alloc(2);
  head.writeUInt16BE(code);
  return frame(OP.close, Buffer.concat([head, Buffer.from(reason)]));
};

const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

/** As a client must send it: masked. */
export const toBytes = ({ opcode, payload, fin, rsv }: Frame): Buffer => {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  const masked = Buffer.from(payload);
  for (let at = 0; at < length; at += 1) masked[at] = (masked[at] ?? 0) ^ (MASK[at % 4] ?? 0);
  return Buffer.concat([head, MASK, masked]);
};

/** The first frame of the bytes and how long it is; null when it is not whole yet. */
export const readFrame = (bytes: Buffer): { readonly frame: Frame; readonly size: number; readonly masked: boolean } | null => {
  const [first, second] = [bytes[0], bytes[1]];
  if (first === undefined || second === undefined) return null;
  const short = second & 0x7f;
  const start = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < start) return null;
  const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < start + length) return null;
  const payload = Buffer.from(bytes.subarray(start, start + length));
  return { frame: { opcode: first & 0x0f, payload, fin: first >= 0x80, rsv: (first >> 4) & 7 }, size: start + length, masked: second >= 0x80 };
};

/** What a server's frame does wrong by itself; null when nothing. */
export const faultOf = ({ frame: { opcode, payload, fin, rsv }, masked }: { readonly frame: Frame; readonly masked: boolean }): string | null => {
  if (masked) return "a masked frame";
  if (rsv !== 0) return "a frame with RSV bits";
  if (!(Object.values(OP) as number[]).includes(opcode)) return `opcode ${opcode}`;
  if (opcode >= 8 && (!fin || payload.length > 125)) return "a fragmented or long control frame";
  return null;
};
