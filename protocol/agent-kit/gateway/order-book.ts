// The commands of the kit's gateway: which are due, which are in flight, what the agent acked, as the gateway itself keeps it.

import type { z } from "zod";
import type { SocketAck } from "../../channel/agent.ts";
import { toAckStatus } from "../../records/command-ack.ts";

export type HeardAck = z.infer<typeof SocketAck>;

export interface OrderOptions {
  readonly commandId?: string;
  readonly lane?: string;
  /** Milliseconds from now, by the gateway's clock; null: never. */
  readonly expiresInMs?: number | null;
  readonly requiresAck?: boolean;
  /** Fields beside the known ones. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** The command as it is sent, without anything that may be missing. */
  readonly isBare?: true;
}

export interface KitOrder {
  readonly commandId: string;
  readonly type: string;
  readonly payload: unknown;
  readonly lane: string;
  readonly seq: number;
  readonly options: OrderOptions;
  /** How often it was sent. */
  attempts: number;
  /** The number of the session that sent it last; -1 for a poll. */
  sentIn: number | null;
  readonly acks: { readonly ack: HeardAck; readonly atMs: number; readonly session: number | null }[];
  /** The first final ack. */
  final: HeardAck | null;
  cancelRequested: boolean;
}

const FINAL: ReadonlySet<string> = new Set(["succeeded", "failed", "rejected", "canceled"]);
export const endsCommand = (status: string): boolean => FINAL.has(toAckStatus(status) ?? "");

const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** In the form of the gateway's own ids. */
const newCommandId = (): string => `cmd_01${Array.from({ length: 24 }, () => LETTERS[Math.floor(Math.random() * LETTERS.length)]).join("")}`;

export interface OrderBook {
  readonly orders: ReadonlyMap<string, KitOrder>;
  add(type: string, payload: unknown, options?: OrderOptions): KitOrder;
  /** The `data` of a command frame. */
  frameOf(order: KitOrder): Readonly<Record<string, unknown>>;
  /** What may be sent next with this credit: lane by lane, in order. */
  due(credit: number): readonly KitOrder[];
  /** Stores an ack, and returns the `data` of its `ack_ok`. */
  take(ack: HeardAck, atMs: number, session: number | null): Readonly<Record<string, unknown>>;
  /** What was sent without an ack is due again. */
  sendAgain(): void;
}

export const createOrderBook = (nowMs: () => number): OrderBook => {
  const orders = new Map<string, KitOrder>();
  let seq = 0;
  const inFlight = (): readonly KitOrder[] => [...orders.values()].filter((order) => order.sentIn !== null && order.final === null);
  return {
    orders,
    add: (type, payload, options = {}) => {
      seq += 1;
      const commandId = options.commandId ?? newCommandId();
      const order: KitOrder = {
        commandId,
        type,
        payload,
        lane: options.lane ?? `cmd:${commandId}`,
        seq,
        options,
        attempts: 0,
        sentIn: null,
        acks: [],
        final: null,
        cancelRequested: false,
      };
      orders.set(commandId, order);
      return order;
    },
    frameOf: ({ commandId, type, payload, lane, seq: at, attempts, options: { expiresInMs = 3_600_000, requiresAck = true, more = {}, isBare } }) =>
      isBare
        ? { command: { commandId, type } }
        : {
            command: { commandId, type, issuedAt: new Date(nowMs()).toISOString(), payload, requiresAck, ...more },
            delivery: {
              attempt: attempts,
              redelivered: attempts > 1,
              seq: at,
              lane,
              ackBy: new Date(nowMs() + 20_000).toISOString(),
              expiresAt: expiresInMs === null ? null : new Date(nowMs() + expiresInMs).toISOString(),
              executionTimeoutSec: 900,
              ...more,
            },
          },
    due: (credit) => {
      const open = inFlight();
      const busy = new Set(open.map(({ lane }) => lane));
      const found: KitOrder[] = [];
      for (const order of orders.values()) {
        if (found.length >= credit - open.length) break;
        if (order.sentIn !== null || order.final !== null || busy.has(order.lane)) continue;
        busy.add(order.lane);
        found.push(order);
      }
      return found;
    },
    take: (ack, atMs, session) => {
      const order = orders.get(ack.commandId);
      if (order === undefined) return { commandId: ack.commandId, status: null, result: "unknown" };
      order.acks.push({ ack, atMs, session });
      const isNew = order.final === null;
      if (endsCommand(ack.status)) order.final ??= ack;
      return { commandId: ack.commandId, status: order.final?.status ?? "running", result: isNew ? "applied" : "duplicate" };
    },
    sendAgain: () => {
      for (const order of orders.values()) if (order.final === null && order.acks.length === 0) order.sentIn = null;
    },
  };
};
