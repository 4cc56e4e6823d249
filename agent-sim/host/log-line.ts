// Lines of logs as hosts give them, in the form in which the gateway takes them.
import { CUT_MARK, type LogLine, MAX_LINE_BYTES } from "../../protocol/index.ts";

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z`;
/** Standard error has a tab after the time. */
const OWN = new RegExp(`^(${TIME})([ \\t])(.*)$`, "s");
const short = (text: string): string =>
  Buffer.byteLength(text) <= MAX_LINE_BYTES ? text : `${Buffer.from(text).toString("utf8", 0, MAX_LINE_BYTES)}${CUT_MARK}`;

const momentOf = (time: string | undefined, nowMs: number): string => {
  const ms = Date.parse(time ?? "");
  return new Date(Number.isNaN(ms) ? nowMs : ms).toISOString();
};

export const toLogLine = (line: string, nowMs: number): LogLine => {
  const own = OWN.exec(line);
  if (own !== null) return { at: momentOf(own[1], nowMs), stream: own[2] === "\t" ? "stderr" : "stdout", text: short(own[3] ?? "") };
  return { at: momentOf(undefined, nowMs), stream: "stdout", text: short(line) };
};
