// Asks the other side of a carrier whether it is there: a connection that was lost without a word looks like an idle one.
import type { Http2Session } from "node:http2";
import { CARRIER_LIMITS } from "../../../protocol/index.ts";
import type { Time } from "../timing/time.ts";

/** Calls `lost` once an answer stays away. Returns how to stop asking. */
export const pingPeer = (session: Http2Session, time: Time, lost: () => void): (() => void) => {
  let stopped = false;
  let cancelPing = (): void => undefined;
  let cancelPong = (): void => undefined;
  const ping = (): void => {
    cancelPing = time.after(CARRIER_LIMITS.pingMs, () => {
      if (stopped || session.destroyed) return;
      cancelPong = time.after(CARRIER_LIMITS.pongMs, lost);
      session.ping(() => {
        cancelPong();
        if (!stopped) ping();
      });
    });
  };
  ping();
  return () => {
    stopped = true;
    cancelPing();
    cancelPong();
  };
};
