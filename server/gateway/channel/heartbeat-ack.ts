// The answer to a heartbeat as bytes, put together in place: all that differs from one to the next are two numbers, and the time once a millisecond.
import { bytesOf } from "./scan-values.ts";
import type { Stamp } from "./stamp.ts";

const ZERO = 0x30;
const MAX_DIGITS = 15;

const digitsOf = (number: number): number => {
  let digits = 1;
  for (let limit = 10; number >= limit; limit *= 10) digits += 1;
  return digits;
};

const writeDigits = (bytes: Uint8Array, end: number, number: number): void => {
  let rest = number;
  for (let at = end - 1; rest > 0; at -= 1) {
    const tenth = Math.floor(rest / 10);
    bytes[at] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
};

/** An answer whose two numbers have so many digits, with the places of what changes. */
interface Form {
  readonly bytes: Uint8Array;
  readonly idEnd: number;
  readonly tsAt: number;
  readonly refEnd: number;
  readonly serverTimeAt: number;
  time: string;
}

const newForm = (idDigits: number, refDigits: number, time: string): Form => {
  const toId = `{"op":"heartbeat_ack","id":"s${"0".repeat(idDigits)}`;
  const toTs = `${toId}","ts":"`;
  const toRef = `${toTs}${time}","ref":"${"0".repeat(refDigits)}`;
  const toServerTime = `${toRef}","data":{"serverTime":"`;
  const bytes = bytesOf(`${toServerTime}${time}"}}`);
  return { bytes, idEnd: toId.length, tsAt: toTs.length, refEnd: toRef.length, serverTimeAt: toServerTime.length, time };
};

const setTime = (form: Form, time: string): void => {
  form.time = time;
  for (let index = 0; index < time.length; index += 1) {
    const code = time.charCodeAt(index);
    form.bytes[form.tsAt + index] = code;
    form.bytes[form.serverTimeAt + index] = code;
  }
};

/** The same frame as `writeFrame` would write for the session's frame `s{number}`. The bytes are good until the next call. Both numbers are whole and above 0. */
export const createHeartbeatAck = (stamp: Stamp): ((number: number, ref: number, nowMs: number) => Uint8Array) => {
  const forms: (Form | undefined)[] = Array.from({ length: (MAX_DIGITS + 1) ** 2 });
  return (number, ref, nowMs) => {
    const time = stamp(nowMs);
    const idDigits = digitsOf(number);
    const refDigits = digitsOf(ref);
    const index = idDigits * (MAX_DIGITS + 1) + refDigits;
    const form = forms[index] ?? newForm(idDigits, refDigits, time);
    forms[index] = form;
    if (form.time !== time) setTime(form, time);
    writeDigits(form.bytes, form.idEnd, number);
    writeDigits(form.bytes, form.refEnd, ref);
    return form.bytes;
  };
};
