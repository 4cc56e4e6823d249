// Brings what agents send of logs to the one node that asked for it: to this node at once, to another through the bus.

import type { LogLine } from "../../../../protocol/index.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { Bus } from "../../../platform/cluster/bus.ts";
import { type LogChunk, readChunk } from "./chunk.ts";

/** Who asked whom: an agent can answer only orders to its own device, since its device is part of the address. */
export interface LogAddress {
  readonly tenantId: string;
  readonly deviceId: string;
  readonly followId: string;
}

/** What comes back for an order: lines, or the agent's refusal. */
export type LogAnswer = { readonly kind: "chunk"; readonly chunk: LogChunk } | { readonly kind: "refused"; readonly code: string };

export interface LogRoutes {
  /** Waits for answers, from any node. Returns the function that ends it. */
  listen(address: LogAddress, onAnswer: (answer: LogAnswer) => void): Promise<() => void>;
  /** Returns whether somebody waits for it. */
  receive(scope: SystemScope, deviceId: string, chunk: string): Promise<boolean>;
  /** The agent did not take the order. */
  refused(address: LogAddress, code: string): void;
}

export interface LogRoutesDeps {
  readonly bus: Pick<Bus, "publish" | "subscribe" | "healthy">;
  readonly onError: (error: unknown) => void;
}

/** JSON makes six characters of a control character. */
const MAX_MESSAGE_BYTES = 2_097_152;

const channelOf = ({ tenantId, deviceId, followId }: LogAddress): string => `app-logs:${tenantId}:${deviceId}:${followId}`;

export const createLogRoutes = ({ bus, onError }: LogRoutesDeps): LogRoutes => {
  const listening = new Map<string, (answer: LogAnswer) => void>();

  const receive = async (address: LogAddress, chunk: LogChunk): Promise<boolean> => {
    const here = listening.get(channelOf(address));
    if (here !== undefined) {
      here({ kind: "chunk", chunk });
      return true;
    }
    const { lines, ...head } = chunk;
    const isHeard = await bus.publish(channelOf(address), { op: "chunk", ...head, lines: JSON.stringify(lines) }, MAX_MESSAGE_BYTES);
    // While messages get lost, nobody gets the lines. Who waits asks again.
    return isHeard && bus.healthy();
  };

  return {
    listen: async (address, onAnswer) => {
      const channel = channelOf(address);
      listening.set(channel, onAnswer);
      const stop = await bus.subscribe(channel, ({ op, lines, code, ...head }) => {
        if (op === "chunk") onAnswer({ kind: "chunk", chunk: { ...(head as unknown as LogChunk), lines: JSON.parse(String(lines)) as LogLine[] } }); // as: only `receive` publishes them
        if (op === "refused") onAnswer({ kind: "refused", code: String(code) });
      });
      return () => {
        listening.delete(channel);
        stop().catch(onError);
      };
    },
    receive: async ({ tenantId }, deviceId, text) => {
      const chunk = readChunk(text);
      return receive({ tenantId, deviceId, followId: chunk.followId }, chunk);
    },
    refused: (address, code) => {
      const here = listening.get(channelOf(address));
      if (here !== undefined) here({ kind: "refused", code });
      else bus.publish(channelOf(address), { op: "refused", code: code.slice(0, 64) }).catch(onError);
    },
  };
};
