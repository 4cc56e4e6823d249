// Peers that never finish a head, a hello, a frame or a message: the gateway closes each in time, and nobody else notices.

import { type PairedDevice, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { type ConnectStage, frameHead, frameOf, heartbeatOf, OPCODE, openRawAgent, type RawAgent } from "../rig/raw.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import { runTrial } from "../trial.ts";

const HEARTBEAT_SECONDS = 2;
const DRIP_MS = 500;
/** Slack for the gateway's timer, the library's timer of 4 s, and a busy machine. */
const SLACK_MS = 6_000;
const AUTHENTICATE_MS = 10_000;
/** An endless message counts as silence: three heartbeats and ten seconds. */
const MESSAGE_MS = (3 * HEARTBEAT_SECONDS + 10) * 1_000;
const BIG = 500;

interface Kind {
  readonly name: string;
  /** The stage up to which it behaves like a good agent. */
  readonly stage: ConnectStage;
  readonly withinMs: number;
  readonly first: Buffer | string;
  /** Sent every half second until the gateway closes the connection. */
  readonly drip: Buffer | string;
}

const fragment = (opcode: number): Buffer => Buffer.concat([frameHead(opcode, 1, false), Buffer.from(" ")]);
const CONTINUATION = 0;
const KINDS: readonly Kind[] = [
  { name: "silence", stage: "tcp", withinMs: AUTHENTICATE_MS, first: "", drip: "" },
  { name: "half a head", stage: "tcp", withinMs: AUTHENTICATE_MS, first: "GET /v1/health HTTP/1.1\r\nHost: chaos\r\nx-slow: ", drip: "" },
  { name: "a head byte by byte", stage: "tcp", withinMs: AUTHENTICATE_MS, first: "GET /v1/health HTTP/1.1\r\nHost: chaos\r\nx-slow: ", drip: "x" },
  {
    name: "an upgrade byte by byte",
    stage: "tcp",
    withinMs: AUTHENTICATE_MS,
    first: "GET /v1/agent/connect HTTP/1.1\r\nHost: chaos\r\nUpgrade: webs",
    drip: "o",
  },
  {
    name: "a body byte by byte",
    stage: "tcp",
    withinMs: AUTHENTICATE_MS,
    first: `POST /v1/pairing/initiate HTTP/1.1\r\nHost: chaos\r\nContent-Type: application/json\r\nContent-Length: ${BIG}\r\n\r\n{`,
    drip: " ",
  },
  { name: "no hello", stage: "opening", withinMs: AUTHENTICATE_MS, first: "", drip: "" },
  { name: "a hello byte by byte", stage: "opening", withinMs: AUTHENTICATE_MS, first: frameHead(OPCODE.text, BIG), drip: " " },
  { name: "pings instead of a hello", stage: "opening", withinMs: AUTHENTICATE_MS, first: "", drip: frameOf(OPCODE.ping, "") },
  { name: "half a frame's head", stage: "ready", withinMs: MESSAGE_MS, first: frameHead(OPCODE.text, BIG).subarray(0, 1), drip: "" },
  { name: "a payload byte by byte", stage: "ready", withinMs: MESSAGE_MS, first: frameHead(OPCODE.text, BIG), drip: " " },
  { name: "endless fragments", stage: "ready", withinMs: MESSAGE_MS, first: fragment(OPCODE.text), drip: fragment(CONTINUATION) },
  { name: "pings inside a message", stage: "ready", withinMs: MESSAGE_MS, first: fragment(OPCODE.text), drip: frameOf(OPCODE.ping, "") },
];

interface Peer {
  readonly kind: Kind;
  readonly agent: RawAgent;
  /** Whether the first bytes are sent. */
  begun: boolean;
}
const heldMs = ({ agent }: Peer): number | null => (agent.closedAtMs === null ? null : agent.closedAtMs - (agent.reachedAtMs ?? agent.openedAtMs));
const isLate = (peer: Peer): boolean => (heldMs(peer) ?? Number.POSITIVE_INFINITY) > peer.kind.withinMs + SLACK_MS;

/** Control: the peers send whole heartbeats, so each is a good agent. */
const goodKinds = (): readonly Kind[] =>
  KINDS.filter(({ stage }) => stage === "ready").map((kind) => ({ ...kind, first: heartbeatOf(0), drip: heartbeatOf(1) }));

const pester = async (rig: Rig, members: readonly PairedDevice[], kinds: readonly Kind[]): Promise<readonly Peer[]> => {
  const [port = 0] = rig.nodes.map((node) => node.port);
  const peers = members.map((member, index): Peer => {
    const kind = kinds[index % kinds.length] as Kind;
    return { kind, agent: openRawAgent(port, member, kind.stage), begun: false };
  });
  const dripping = setInterval(() => {
    for (const peer of peers) {
      if (peer.agent.reachedAtMs === null || peer.agent.closedAtMs !== null) continue;
      peer.agent.write(peer.begun ? peer.kind.drip : peer.kind.first);
      peer.begun = true;
    }
  }, DRIP_MS);
  try {
    await until(time, () => peers.every(({ agent }) => agent.closedAtMs !== null), { everyMs: 100, withinMs: MESSAGE_MS + 2 * SLACK_MS });
    return peers;
  } finally {
    clearInterval(dripping);
    for (const { agent } of peers) agent.destroy();
  }
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed, env: { HEARTBEAT_SECONDS: String(HEARTBEAT_SECONDS) } }, async (rig) => {
    const kinds = control ? goodKinds() : KINDS;
    const strangers = await rig.provision(kinds.length * (scale.agents > 50 ? 25 : 3));
    const state: { peers: readonly Peer[] } = { peers: [] };
    const trial = await runTrial({
      rig,
      seed,
      scale,
      trouble: async ({ fault }) => {
        fault(`${strangers.length} peers that never finish`);
        state.peers = await pester(rig, strangers, kinds);
      },
    });
    const latency = createLatency();
    for (const peer of state.peers) latency.add(heldMs(peer) ?? Number.POSITIVE_INFINITY);
    const slowest = kinds.map(({ name }) => {
      const held = state.peers.filter(({ kind }) => kind.name === name).map((peer) => heldMs(peer) ?? Number.POSITIVE_INFINITY);
      return `${name} ${(Math.max(...held) / 1_000).toFixed(1)} s`;
    });
    return {
      ...trial,
      n: state.peers.length,
      violations: {
        ...trial.violations,
        "held-open": state.peers.filter(isLate).length,
        "not-reached": state.peers.filter(({ agent }) => agent.reachedAtMs === null).length,
      },
      latencyMs: latency.percentiles(),
      notes: [
        ...trial.notes,
        `n counts peers; ms are from the last valid step to the close; the bounds are ${AUTHENTICATE_MS / 1_000} s to authenticate and ${MESSAGE_MS / 1_000} s for a message (three heartbeats of ${HEARTBEAT_SECONDS} s and 10 s), plus ${SLACK_MS / 1_000} s for the timers`,
        `longest: ${slowest.join(", ")}`,
      ],
    };
  });

export const slowPeerScenarios: readonly Scenario[] = [
  {
    name: "slow-peers",
    promise: "C7",
    claim:
      "peers that send byte by byte or never finish a head, an upgrade, a hello, a frame or a message are closed in the stated time; other agents work as usual",
    control: { how: "the peers send whole heartbeats, so nothing is wrong with them", red: "held-open" },
    run,
  },
];
