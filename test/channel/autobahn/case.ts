// What a conformance case is made of, and the words in which the tables say it.
import { type Frame, toBytes } from "./frames.ts";
import type { Heard } from "./wire.ts";

export type Write = { readonly bytes: Buffer; readonly chop?: number } | { readonly pauseMs: number } | { readonly untilHeard: number };

/** Who is to end the connection, and with which codes. `null` is a close frame without a code. */
export type Ending =
  /** The case is over: the client closes with 1000, the server answers with a close frame and ends the connection. */
  | { readonly by: "client" }
  /** The writes hold the client's close frame; it is answered with one of these codes, or, not as strictly, without a code. */
  | { readonly by: "case"; readonly codes: readonly (number | null)[] }
  /** The server fails the connection: with one of these codes, or by dropping it without a word. */
  | { readonly by: "server"; readonly codes: readonly (number | null)[] }
  | { readonly by: "anyone" };

export interface Case {
  readonly id: string;
  readonly title: string;
  readonly writes: readonly Write[];
  readonly strict: readonly Heard[];
  /** Also allowed by the protocol, if not as good. */
  readonly nonStrict?: readonly Heard[];
  readonly ending: Ending;
  /** The pause must see the end of the connection, or the case is passed non-strictly only. */
  readonly failFast?: boolean;
  /** The protocol leaves open what happens. */
  readonly informational?: boolean;
}

const HEAR =
  (kind: Heard["kind"]) =>
  (data: Buffer | string): Heard => ({ kind, data: Buffer.from(data).toString("latin1") });
export const [text, binary, pong] = [HEAR("text"), HEAR("binary"), HEAR("pong")];

/** All frames in one write; each in its own; octet by octet. */
export const together = (...frames: readonly Frame[]): readonly Write[] => [{ bytes: Buffer.concat(frames.map(toBytes)) }];
export const apart = (...frames: readonly Frame[]): readonly Write[] => frames.map((each) => ({ bytes: toBytes(each) }));
export const octets = (...frames: readonly Frame[]): readonly Write[] => frames.map((each) => ({ bytes: toBytes(each), chop: 1 }));

type Told = Pick<Case, "id" | "title">;
export const told = (id: string, title: string): Told => ({ id, title });

export const answers = (what: Told, writes: readonly Write[], ...strict: readonly Heard[]): Case => ({ ...what, writes, strict, ending: { by: "client" } });
export const fails = (what: Told, writes: readonly Write[], codes: readonly (number | null)[] = [1002]): Case => ({
  ...what,
  writes,
  strict: [],
  ending: { by: "server", codes },
});
/** The first message is good and may be answered before the connection fails. */
export const failsAfter = (what: Told, writes: readonly Write[], answer: Heard): Case => ({ ...fails(what, writes), strict: [answer], nonStrict: [] });
/** The same, but the answer is waited for before anything bad is sent. */
export const failsOnceHeard = (what: Told, [first, ...rest]: readonly Write[], answer: Heard): Case =>
  failsAfter(what, [...(first === undefined ? [] : [first]), { untilHeard: 1 }, ...rest], answer);
export const closes = (what: Told, writes: readonly Write[], codes: readonly (number | null)[], ...strict: readonly Heard[]): Case => ({
  ...what,
  writes,
  strict,
  ending: { by: "case", codes },
});
