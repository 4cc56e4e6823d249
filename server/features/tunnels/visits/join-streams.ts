// Two streams as one connection: bytes go both ways as fast as the slower side takes them, each side may end first, and what carries nothing ends.
import type { Duplex } from "node:stream";

export interface JoinOptions {
  readonly idleMs: number;
  /** Counts what passes. */
  readonly passed: (bytesIn: number, bytesOut: number) => void;
}

/** Once one side has said all that it has to say, the other one may be silent for so long. */
const HALF_CLOSED_MS = 300_000;

export const joinStreams = (visitor: Duplex, service: Duplex, { idleMs, passed }: JoinOptions): void => {
  const end = (): void => {
    visitor.destroy();
    service.destroy();
  };
  let idle = setTimeout(end, idleMs);
  const halfClose = (): void => {
    clearTimeout(idle);
    idle = setTimeout(end, Math.min(idleMs, HALF_CLOSED_MS));
  };
  for (const [one, other, count] of [
    [visitor, service, (length: number) => passed(length, 0)],
    [service, visitor, (length: number) => passed(0, length)],
  ] as const) {
    one.on("data", ({ length }: Buffer) => {
      idle.refresh();
      count(length);
    });
    one.once("end", halfClose);
    one.on("error", () => undefined);
    one.once("close", () => {
      clearTimeout(idle);
      other.destroy();
    });
    one.pipe(other);
  }
};
