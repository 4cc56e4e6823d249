// Peers that never come to an end: with the head of a request, the hello, a frame, a message. Each is closed in time, and nobody else notices.

import { type PairedDevice, systemTime as time, until } from "../../agent-sim/agent/index.ts";
import { createLatency } from "../../agent-sim/fleet/latency.ts";
import { frameHead, frameOf, heartbeatOf, OP, openRaw, type RawAgent, type Stage } from "./raw.ts";
import { type Rig, withRig } from "./rig.ts";
import type { Context, Outcome, Scenario } from "./scenario.ts";
import { runTrial } from "./trial.ts";

const HEARTBEAT_SECONDS = 2;
const DRIP_MS = 500;
/** For a look of the gateway's clock, the library's clock of 4 s, and a busy machine. */
const SLACK_MS = 6_000;
const AUTHENTICATE_MS = 10_000;
/** A message that never ends is silence: three heartbeats and ten seconds. */
const MESSAGE_MS = (3 * HEARTBEAT_SECONDS + 10) * 1_000;
const BIG = 500;

interface Kind {
  readonly name: string;
  /** How far it goes as a good agent would. */
  readonly stage: Stage;
  readonly withinMs: number;
  readonly first: Buffer | string;
  /** One every half second, for as long as it may. */
  readonly drip: Buffer | string;
}

const fragment = (opcode: number): Buffer => Buffer.concat([frameHead(opcode, 1, false), Buffer.from(" ")]);
const CONTINUATION = 0;
const KINDS: readonly Kind[] = [
  { name: "nothing", stage: "tcp", withinMs: AUTHENTICATE_MS, first: "", drip: "" },
  { name: "half a head", stage: "tcp", withinMs: AUTHENTICATE_MS, first: "GET /v1/health HTTP/1.1\r\nHost: chaos\r\nx-slow: ", drip: "" },
  { name: "a head by bytes", stage: "tcp", withinMs: AUTHENTICATE_MS, first: "GET /v1/health HTTP/1.1\r\nHost: chaos\r\nx-slow: ", drip: "x" },
  { name: "an upgrade by bytes", stage: "tcp", withinMs: AUTHENTICATE_MS, first: "GET /v1/agent/connect HTTP/1.1\r\nHost: chaos\r\nUpgrade: webs", drip: "o" },
  {
    name: "a body by bytes",
    stage: "tcp",
    withinMs: AUTHENTICATE_MS,
    first: `POST /v1/pairing/initiate HTTP/1.1\r\nHost: chaos\r\nContent-Type: application/json\r\nContent-Length: ${BIG}\r\n\r\n{`,
    drip: " ",
  },
  { name: "no hello", stage: "opening", withinMs: AUTHENTICATE_MS, first: "", drip: "" },
  { name: "a hello by bytes", stage: "opening", withinMs: AUTHENTICATE_MS, first: frameHead(OP.text, BIG), drip: " " },
  { name: "pings for a hello", stage: "opening", withinMs: AUTHENTICATE_MS, first: "", drip: frameOf(OP.ping, "") },
  { name: "half a frame's head", stage: "ready", withinMs: MESSAGE_MS, first: frameHead(OP.text, BIG).subarray(0, 1), drip: "" },
  { name: "a payload by bytes", stage: "ready", withinMs: MESSAGE_MS, first: frameHead(OP.text, BIG), drip: " " },
  { name: "endless fragments", stage: "ready", withinMs: MESSAGE_MS, first: fragment(OP.text), drip: fragment(CONTINUATION) },
  { name: "pings in a message", stage: "ready", withinMs: MESSAGE_MS, first: fragment(OP.text), drip: frameOf(OP.ping, "") },
];

interface Peer {
  readonly kind: Kind;
  readonly agent: RawAgent;
  /** Begun: the first bytes are out. */
  begun: boolean;
}
const heldMs = ({ agent }: Peer): number | null => (agent.closedAtMs === null ? null : agent.closedAtMs - (agent.reachedAtMs ?? agent.openedAtMs));
const isLate = (peer: Peer): boolean => (heldMs(peer) ?? Number.POSITIVE_INFINITY) > peer.kind.withinMs + SLACK_MS;

/** Control: they drip whole heartbeats, so that each is an agent as it should be. */
const goodKinds = (): readonly Kind[] =>
  KINDS.filter(({ stage }) => stage === "ready").map((kind) => ({ ...kind, first: heartbeatOf(0), drip: heartbeatOf(1) }));

const pester = async (rig: Rig, members: readonly PairedDevice[], kinds: readonly Kind[]): Promise<readonly Peer[]> => {
  const [port = 0] = rig.nodes.map((node) => node.port);
  const peers = members.map((member, index): Peer => {
    const kind = kinds[index % kinds.length] as Kind;
    return { kind, agent: openRaw(port, member, kind.stage), begun: false };
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

const run = ({ seed, scale, control }: Context): Promise<Outcome> =>
  withRig({ nodes: 1, seed, env: { HEARTBEAT_SECONDS: String(HEARTBEAT_SECONDS) } }, async (rig) => {
    const kinds = control ? goodKinds() : KINDS;
    const strangers = await rig.provision(kinds.length * (scale.agents > 50 ? 25 : 3));
    const state: { peers: readonly Peer[] } = { peers: [] };
    const trial = await runTrial({
      rig,
      seed,
      scale,
      trouble: async ({ fault }) => {
        fault(`${strangers.length} peers that never come to an end`);
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
        `n counts peers; ms are from the last good step to the close; allowed are ${AUTHENTICATE_MS / 1_000} s to authenticate and ${MESSAGE_MS / 1_000} s for a message (three heartbeats of ${HEARTBEAT_SECONDS} s and 10 s), and ${SLACK_MS / 1_000} s for the clocks`,
        `longest: ${slowest.join(", ")}`,
      ],
    };
  });

export const slowPeerScenarios: readonly Scenario[] = [
  {
    name: "slow-peers",
    promise: "C7",
    claim: "peers that drip bytes or never end a head, an upgrade, a hello, a frame or a message are closed in the stated time; other agents work as always",
    control: { how: "the peers send whole heartbeats, so that nothing is wrong with them", red: "held-open" },
    run,
  },
];
