// What an agent says of itself in hello, beside the proof.
import { arch, hostname, platform } from "node:os";
import type { Hello } from "../../protocol/index.ts";
import type { JournalEntry } from "./journal.ts";
import type { AgentOptions, Parts } from "./life.ts";

export const AGENT_VERSION = "0.1.0";

const ALL = ["journal.v1", "inflight.v1", "cancel.v1", "progress.v1", "handoff.v1"];
const IN_FLIGHT = "inflight.v1";
const DEFAULT_IN_FLIGHT = 8;
/** As many as a hello may list. */
const MOST_LISTED = 200;
const capabilitiesOf = ({ capabilities = ALL }: Pick<AgentOptions, "capabilities">): readonly string[] => capabilities;

/** What it holds, named only by an agent that announces that it names all of it. Work that still runs comes first: what is not listed counts as lost. */
export const heldBy = (options: Pick<AgentOptions, "capabilities" | "journal">): readonly JournalEntry[] | undefined =>
  capabilitiesOf(options).includes(IN_FLIGHT)
    ? [...options.journal.unsettled()].sort((a, b) => Number(a.result !== null) - Number(b.result !== null)).slice(0, MOST_LISTED)
    : undefined;

/** An agent that holds more than it may list does not claim to list everything. */
const announced = (options: AgentOptions): readonly string[] =>
  options.journal.unsettled().length > MOST_LISTED ? capabilitiesOf(options).filter((name) => name !== IN_FLIGHT) : capabilitiesOf(options);

/** `from`: the session that this one continues while it still lives. */
export const introduce = ({ options, life, instanceId }: Parts, from: string | null): Omit<Hello, "proof"> => ({
  agentVersion: AGENT_VERSION,
  instanceId,
  hostname: hostname(),
  os: platform(),
  arch: arch(),
  capabilities: [...announced(options), ...(options.signatureVersion === 2 ? ["signature.v2"] : [])],
  maxInFlight: options.maxInFlight ?? DEFAULT_IN_FLIGHT,
  clockOffsetMs: Math.round(life.offsetMs),
  inFlight: (heldBy(options) ?? []).map(({ commandId, status }) => ({ commandId, status })),
  ...(from === null ? {} : { handoffFrom: from }),
  ...(options.fingerprint === undefined ? {} : { fingerprint: options.fingerprint }),
  ...(options.bootId === undefined ? {} : { bootId: options.bootId }),
});
