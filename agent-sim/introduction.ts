// What an agent says of itself in hello, beside the proof.
import { arch, hostname, platform } from "node:os";
import type { Hello } from "../protocol/index.ts";
import type { JournalEntry } from "./journal.ts";
import type { AgentOptions, Parts } from "./life.ts";

export const AGENT_VERSION = "0.1.0";
const DEFAULT_IN_FLIGHT = 8;
/** As many as a hello may list. */
const MOST_LISTED = 200;

const ALL = ["journal.v1", "inflight.v1", "cancel.v1", "progress.v1", "handoff.v1"];
const IN_FLIGHT = "inflight.v1";

/** What an agent with inflight.v1 does not list, the gateway takes for lost; one that cannot list everything does not claim to. */
const capabilitiesOf = ({ capabilities = ALL, journal }: Pick<AgentOptions, "capabilities" | "journal">): readonly string[] =>
  journal.unsettled().length <= MOST_LISTED ? capabilities : capabilities.filter((name) => name !== IN_FLIGHT);

/** What it holds, named only by an agent that announces that it names all of it. */
export const heldBy = (options: Pick<AgentOptions, "capabilities" | "journal">): readonly JournalEntry[] | undefined =>
  capabilitiesOf(options).includes(IN_FLIGHT) ? options.journal.unsettled() : undefined;

/** For the hello, which has room for so many: work that still runs comes first. */
const listed = ({ capabilities = ALL, journal }: Pick<AgentOptions, "capabilities" | "journal">): readonly JournalEntry[] =>
  capabilities.includes(IN_FLIGHT) ? [...journal.unsettled()].sort((a, b) => Number(a.result !== null) - Number(b.result !== null)).slice(0, MOST_LISTED) : [];

/** `from`: the session that this one continues while it still lives. */
export const introduce = ({ options, life, instanceId }: Parts, from: string | null): Omit<Hello, "proof"> => ({
  agentVersion: AGENT_VERSION,
  instanceId,
  hostname: hostname(),
  os: platform(),
  arch: arch(),
  capabilities: [...capabilitiesOf(options), ...(options.signatureVersion === 2 ? ["signature.v2"] : [])],
  maxInFlight: options.maxInFlight ?? DEFAULT_IN_FLIGHT,
  clockOffsetMs: Math.round(life.offsetMs),
  inFlight: listed(options).map(({ commandId, status }) => ({ commandId, status })),
  ...(from === null ? {} : { handoffFrom: from }),
  ...(options.fingerprint === undefined ? {} : { fingerprint: options.fingerprint }),
  ...(options.bootId === undefined ? {} : { bootId: options.bootId }),
});
