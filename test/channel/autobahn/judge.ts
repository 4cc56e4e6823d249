// Plays a case against a server and says how it ended.
import { isDeepStrictEqual } from "node:util";
import type { Case, Ending } from "./case.ts";
import { closeFrame, toBytes } from "./frames.ts";
import { openWire, type Wire } from "./wire.ts";

export type Verdict = "passed" | "non-strict" | "informational" | "failed";
export interface Judgement {
  readonly verdict: Verdict;
  /** What was seen, for a case that failed. */
  readonly seen: string;
}

/** Only a case that fails waits this long. */
const PATIENCE_MS = 3_000;

export const judge = async (each: Case, at: { readonly port: number; readonly path: string }): Promise<Judgement> => {
  const wire = await openWire(at.port, at.path);
  try {
    const failedFast = await write(wire, each);
    const isAnswered = () => isDeepStrictEqual(wire.heard, each.strict);
    if (each.ending.by === "client") {
      await wire.until(isAnswered, PATIENCE_MS);
      await wire.write(toBytes(closeFrame(1000)));
    }
    await wire.until(() => wire.ended, PATIENCE_MS);
    return { verdict: verdictOf(each, wire, failedFast), seen: describe(wire) };
  } finally {
    wire.destroy();
  }
};

/** Whether the connection ended within a pause, before everything was written. */
const write = async (wire: Wire, { writes }: Case): Promise<boolean> => {
  let endedInPause = false;
  for (const each of writes) {
    if ("bytes" in each) await wire.write(each.bytes, each.chop);
    else if ("untilHeard" in each) await wire.until(() => wire.heard.length >= each.untilHeard, PATIENCE_MS);
    else {
      await wire.until(() => wire.ended, each.pauseMs);
      endedInPause = wire.ended;
    }
  }
  return endedInPause;
};

const verdictOf = (each: Case, wire: Wire, failedFast: boolean): Verdict => {
  const isStrict = isDeepStrictEqual(wire.heard, each.strict);
  const isAllowed = isStrict || (each.nonStrict !== undefined && isDeepStrictEqual(wire.heard, each.nonStrict));
  if (wire.fault !== null || !endedWell(each.ending, wire)) return "failed";
  if (each.informational === true) return "informational";
  if (!isAllowed) return "failed";
  const { ending } = each;
  const isEchoed = ending.by !== "case" || ending.codes.some((code) => code === wire.closeCode);
  return isStrict && isEchoed && (each.failFast !== true || failedFast) ? "passed" : "non-strict";
};

// A dropped connection without a close frame is a way to fail it that the protocol allows.
const endedWell = (ending: Ending, { ended, closeCode }: Wire): boolean => {
  if (!ended) return false;
  switch (ending.by) {
    case "client":
      return closeCode === 1000;
    case "case":
      return closeCode === null || (closeCode !== undefined && ending.codes.includes(closeCode));
    case "server":
      return closeCode === undefined || ending.codes.includes(closeCode);
    case "anyone":
      return true;
  }
};

const describe = ({ heard, closeCode, ended, fault }: Wire): string => {
  const messages = heard.map(({ kind, data }) => `${kind}(${data.length > 40 ? `${data.length} bytes` : JSON.stringify(data)})`);
  const close = closeCode === undefined ? "no close frame" : `close ${closeCode ?? "without a code"}`;
  return [...messages, close, ended ? "ended" : "still open", ...(fault === null ? [] : [fault])].join(", ");
};
