// The content of an agent's `hello`, beside the proof.
import type { Hello } from "../../protocol/index.ts";
import type { AgentContext, AgentOptions } from "./agent-context.ts";
import { thisMachine } from "./machine.ts";
import type { JournalEntry } from "./state/journal.ts";

const ALL = ["journal.v1", "inflight.v1", "cancel.v1", "progress.v1", "handoff.v1"];
const IN_FLIGHT = "inflight.v1";
const DEFAULT_IN_FLIGHT = 8;
/** Maximum length of the list in `hello`. */
const MOST_LISTED = 200;
const capabilitiesOf = ({ capabilities = ALL }: Pick<AgentOptions, "capabilities">): readonly string[] => capabilities;

/** The unconfirmed commands, if the agent announces `inflight.v1`. Unfinished ones come first, since the gateway takes unlisted ones for lost. */
export const inFlightOf = (options: Pick<AgentOptions, "capabilities" | "journal">): readonly JournalEntry[] | undefined =>
  capabilitiesOf(options).includes(IN_FLIGHT)
    ? [...options.journal.unsettled()].sort((a, b) => Number(a.result !== null) - Number(b.result !== null)).slice(0, MOST_LISTED)
    : undefined;

/** An agent with more commands than it may list must not announce that it lists all of them. */
const announced = (options: AgentOptions): readonly string[] =>
  options.journal.unsettled().length > MOST_LISTED ? capabilitiesOf(options).filter((name) => name !== IN_FLIGHT) : capabilitiesOf(options);

/** `from`: id of the live session that hands over to this one. */
export const helloOf = (
  { options, state, instanceId }: AgentContext,
  from: string | null,
  { hostname, os, arch, agentVersion } = options.machine ?? thisMachine,
): Omit<Hello, "proof"> => ({
  agentVersion,
  instanceId,
  hostname,
  os,
  arch,
  capabilities: [...announced(options), ...(options.signatureVersion === 2 ? ["signature.v2"] : [])],
  maxInFlight: options.maxInFlight ?? DEFAULT_IN_FLIGHT,
  clockOffsetMs: Math.round(state.offsetMs),
  inFlight: (inFlightOf(options) ?? []).map(({ commandId, status }) => ({ commandId, status })),
  ...(from === null ? {} : { handoffFrom: from }),
  ...(options.fingerprint === undefined ? {} : { fingerprint: options.fingerprint }),
  ...(options.bootId === undefined ? {} : { bootId: options.bootId }),
});
