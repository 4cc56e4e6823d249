// A name server on loopback that answers by a script: the same name may have another address with each question.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIP } from "node:net";

export type RecordType = "A" | "AAAA";

/** What a question gets: addresses, or the name of another one, or a failure. */
export type Reply = { readonly addresses: readonly string[]; readonly alias?: string } | "nxdomain" | "silence" | "truncated";

/** `nth` counts the questions of this name and type from 1. */
export type Script = (name: string, type: RecordType, nth: number) => Reply;

const TYPES: ReadonlyMap<number, RecordType> = new Map([
  [1, "A"],
  [28, "AAAA"],
]);

const encodeName = (name: string): Buffer =>
  Buffer.concat([...name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])), Buffer.from([0])]);

/** Of any legal notation of an IPv6 address: the URL parser writes it out as groups. */
const bytesOf = (address: string): Buffer => {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groupsOf = (text: string | undefined): string[] => (text ?? "").split(":").filter(Boolean);
  const [first, last] = [groupsOf(head), groupsOf(tail)];
  const groups = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => "0"), ...last];
  return Buffer.from(groups.map((group) => group.padStart(4, "0")).join(""), "hex");
};

const record = (name: string, type: number, data: Buffer): Buffer => {
  const rest = Buffer.alloc(10);
  // Class IN, a time to live of 0.
  rest.writeUInt16BE(type, 0);
  rest.writeUInt16BE(1, 2);
  rest.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), rest, data]);
};

const answersOf = (name: string, type: RecordType, { addresses, alias }: Exclude<Reply, string>): readonly Buffer[] => {
  const fitting = addresses.filter((address) => isIP(address) === (type === "A" ? 4 : 6));
  const records = fitting.map((address) => record(alias ?? name, type === "A" ? 1 : 28, bytesOf(address)));
  return alias === undefined ? records : [record(name, 5, encodeName(alias)), ...records];
};

export const startDnsServer = async (script: Script) => {
  const counts = new Map<string, number>();
  const socket = createSocket("udp4");
  socket.on("message", (query, peer) => {
    const end = query.indexOf(0, 12);
    const labels: string[] = [];
    for (let at = 12; at < end; at += 1 + (query[at] ?? 0)) labels.push(query.toString("latin1", at + 1, at + 1 + (query[at] ?? 0)));
    const [name, type] = [labels.join(".").toLowerCase(), TYPES.get(query.readUInt16BE(end + 1))];
    if (type === undefined) return;
    const nth = (counts.get(`${name} ${type}`) ?? 0) + 1;
    counts.set(`${name} ${type}`, nth);
    const reply = script(name, type, nth);
    if (reply === "silence") return;
    const answers = typeof reply === "string" ? [] : answersOf(name, type, reply);
    const header = Buffer.alloc(12);
    header.writeUInt16BE(query.readUInt16BE(0), 0);
    header.writeUInt16BE(0x8180 | (reply === "nxdomain" ? 3 : 0) | (reply === "truncated" ? 0x200 : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    socket.send(Buffer.concat([header, query.subarray(12, end + 5), ...answers]), peer.port, peer.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    server: `127.0.0.1:${socket.address().port}`,
    asked: (name: string, type: RecordType = "A") => counts.get(`${name} ${type}`) ?? 0,
    close: () => new Promise<void>((resolve) => socket.close(() => resolve())),
  };
};
