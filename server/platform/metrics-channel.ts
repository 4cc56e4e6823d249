// The agent sockets of this node in figures. Counts are the channel's own, read at each scrape; durations are told by it.
import { CLOSE } from "../../protocol/index.ts";
import { type Makers, SHORT_SECONDS } from "./metrics-makers.ts";

export interface ChannelFigures {
  readonly connections: number;
  readonly ready: number;
  readonly pushed: number;
  readonly heartbeats: number;
  readonly frameGaps: number;
  readonly frameRepeats: number;
  readonly resendsAsked: number;
  readonly bufferedBytes: number;
  readonly droppedFrames: number;
  readonly heartbeatSeconds: number;
  readonly overloaded: boolean;
  readonly staleEvictions: number;
  /** `accepted` or the reason of a refusal. */
  readonly connects: ReadonlyMap<string, number>;
  /** Refusals that say nothing about the agent, only about the crowd. */
  readonly turnedAway: ReadonlyMap<string, number>;
  readonly closes: ReadonlyMap<number, number>;
}

/** Agents choose close codes freely; only those that mean something here have a line of their own. */
const OURS: ReadonlySet<number> = new Set(Object.values(CLOSE).map(({ code }) => code));
const isKnownCode = (code: number): boolean => (code >= 1000 && code <= 1015) || OURS.has(code);

const closesByCode = (closes: ReadonlyMap<number, number>): Map<string, number> => {
  const byCode = new Map<string, number>();
  for (const [code, count] of closes) {
    const name = isKnownCode(code) ? String(code) : "other";
    byCode.set(name, (byCode.get(name) ?? 0) + count);
  }
  return byCode;
};

export const watchChannel = ({ counter, gauge }: Makers, { node, channel }: { readonly node: string; readonly channel: ChannelFigures }): void => {
  gauge(
    { name: "agent_connections", help: "Sockets on this node: all open ones, and those among them whose hello was good", labels: ["node", "state"] },
    () => [
      [{ node, state: "open" }, channel.connections],
      [{ node, state: "ready" }, channel.ready],
    ],
  );
  counter({ name: "agent_connects_total", help: "Socket upgrades by result, refused ones by reason", labels: ["result", "reason"] }, () =>
    [...channel.connects].map(([word, count]) => [word === "accepted" ? { result: word, reason: "" } : { result: "refused", reason: word }, count] as const),
  );
  counter({ name: "accept_rejected_total", help: "Socket upgrades that were turned away to protect the node, by cause", labels: ["cause"] }, () =>
    [...channel.turnedAway].map(([cause, count]) => [{ cause }, count] as const),
  );
  counter({ name: "agent_closes_total", help: "Closed sockets by close code", labels: ["code"] }, () =>
    [...closesByCode(channel.closes)].map(([code, count]) => [{ code }, count] as const),
  );
  gauge({ name: "ws_buffered_bytes", help: "Bytes that wait in this node for slow sockets, counted every second" }, () => channel.bufferedBytes);
  gauge({ name: "agent_heartbeat_interval_seconds", help: "How often agents are asked to beat" }, () => channel.heartbeatSeconds);
  gauge({ name: "node_overloaded", help: "1 while this node takes no agents in because it has more than it can do" }, () => (channel.overloaded ? 1 : 0));
  for (const [name, help, read] of [
    ["agent_heartbeats_total", "Heartbeats over sockets", () => channel.heartbeats],
    ["commands_pushed_total", "Command frames written to sockets", () => channel.pushed],
    ["ws_dropped_frames_total", "Frames that a socket did not take because its peer reads too slowly", () => channel.droppedFrames],
    [
      "stale_epoch_evictions_total",
      "Sockets that a newer session elsewhere had replaced and that only the flush of presence noticed",
      () => channel.staleEvictions,
    ],
    ["agent_frame_gaps_total", "Frames of agents whose numbers never came", () => channel.frameGaps],
    ["agent_frame_repeats_total", "Frames of agents whose numbers came twice", () => channel.frameRepeats],
    ["agent_resends_asked_total", "Commands that agents were asked to speak of again", () => channel.resendsAsked],
  ] as const)
    counter({ name, help }, read);
};

const FLUSH_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Both ways, since a clock may be ahead or behind. */
const OFFSET_SECONDS = [-300, -60, -10, -1, -0.1, 0.1, 1, 10, 60, 300];

export const createChannelMeters = ({ histogram, tally }: Makers) => {
  const handshake = histogram({ name: "agent_handshake_seconds", help: "Seconds from the open socket to ready" }, SHORT_SECONDS);
  const rtt = histogram(
    { name: "agent_heartbeat_rtt_seconds", help: "Seconds from a heartbeat to its answer, as agents measure and report it" },
    SHORT_SECONDS,
  );
  const offset = histogram({ name: "agent_clock_offset_seconds", help: "Seconds by which agents' clocks are ahead, as they report at hello" }, OFFSET_SECONDS);
  const flush = histogram({ name: "presence_flush_seconds", help: "Seconds that writing the presence of this node's sockets took" }, FLUSH_SECONDS);
  const nudges = tally({ name: "nudges_total", help: "Hints that a device has something to fetch, by where they went", labels: ["result"] });
  return {
    handshake: (seconds: number): void => handshake.observe(seconds),
    heartbeatRtt: (seconds: number): void => rtt.observe(seconds),
    clockOffset: (seconds: number): void => offset.observe(seconds),
    presenceFlush: (seconds: number): void => flush.observe(seconds),
    nudged: (result: string, devices: number): void => nudges.inc({ result }, devices),
  };
};
