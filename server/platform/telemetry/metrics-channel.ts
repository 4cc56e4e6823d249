// Metrics of the agent channel. Each scrape reads the channel's own counters; the channel observes durations as they happen.
import { CLOSE } from "../../../protocol/index.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import { type Makers, SHORT_SECONDS } from "./metrics-makers.ts";

/** Agents choose close codes freely; only codes with a meaning here become labels. */
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

export const watchChannel = ({ counter, gauge }: Makers, { node, channel }: { readonly node: string; readonly channel: Readonly<ChannelStats> }): void => {
  gauge({ name: "agent_connections", help: "Sockets of this node: open, and ready after an accepted hello", labels: ["node", "state"] }, () => [
    [{ node, state: "open" }, channel.connections],
    [{ node, state: "ready" }, channel.ready],
  ]);
  counter({ name: "agent_connects_total", help: "Socket upgrades by result, refusals by reason", labels: ["result", "reason"] }, () =>
    [...channel.connects].map(([word, count]) => [word === "accepted" ? { result: word, reason: "" } : { result: "refused", reason: word }, count] as const),
  );
  counter({ name: "accept_rejected_total", help: "Socket upgrades refused to protect the node, by cause", labels: ["cause"] }, () =>
    [...channel.turnedAway].map(([cause, count]) => [{ cause }, count] as const),
  );
  counter({ name: "agent_closes_total", help: "Closed sockets by close code", labels: ["code"] }, () =>
    [...closesByCode(channel.closes)].map(([code, count]) => [{ code }, count] as const),
  );
  gauge({ name: "ws_buffered_bytes", help: "Bytes buffered for slow sockets, sampled every second" }, () => channel.bufferedBytes);
  gauge({ name: "agent_heartbeat_interval_seconds", help: "Heartbeat interval that this node asks of its agents" }, () => channel.heartbeatSeconds);
  gauge({ name: "node_overloaded", help: "1 while this node is overloaded and refuses new agents" }, () => (channel.overloaded ? 1 : 0));
  for (const [name, help, read] of [
    ["agent_heartbeats_total", "Heartbeats received over sockets", () => channel.heartbeats],
    ["commands_pushed_total", "Command frames written to sockets", () => channel.pushed],
    ["ws_dropped_frames_total", "Frames dropped because the agent reads too slowly", () => channel.droppedFrames],
    ["stale_epoch_evictions_total", "Superseded sockets that received no eviction and were found by the presence flush", () => channel.staleEvictions],
    ["agent_frame_gaps_total", "Frame numbers of agents that never arrived", () => channel.frameGaps],
    ["agent_frame_repeats_total", "Frame numbers of agents that arrived twice", () => channel.frameRepeats],
    ["agent_resends_asked_total", "Commands whose ack the gateway asked for again", () => channel.resendsAsked],
  ] as const)
    counter({ name, help }, read);
};

const FLUSH_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** A clock may be ahead or behind. */
const OFFSET_SECONDS = [-300, -60, -10, -1, -0.1, 0.1, 1, 10, 60, 300];

export const createChannelMeters = ({ histogram, tally }: Makers) => {
  const handshake = histogram({ name: "agent_handshake_seconds", help: "Seconds from opening a socket to ready" }, SHORT_SECONDS);
  const rtt = histogram({ name: "agent_heartbeat_rtt_seconds", help: "Seconds from a heartbeat to its answer, as agents report it" }, SHORT_SECONDS);
  const offset = histogram(
    { name: "agent_clock_offset_seconds", help: "Seconds by which agents' clocks are ahead, as agents report at hello" },
    OFFSET_SECONDS,
  );
  const flush = histogram({ name: "presence_flush_seconds", help: "Seconds that a presence flush took" }, FLUSH_SECONDS);
  const nudges = tally({ name: "nudges_total", help: "Devices that were nudged to fetch commands, by the path the nudge took", labels: ["result"] });
  return {
    handshake: (seconds: number): void => handshake.observe(seconds),
    heartbeatRtt: (seconds: number): void => rtt.observe(seconds),
    clockOffset: (seconds: number): void => offset.observe(seconds),
    presenceFlush: (seconds: number): void => flush.observe(seconds),
    nudged: (result: string, devices: number): void => nudges.inc({ result }, devices),
  };
};
