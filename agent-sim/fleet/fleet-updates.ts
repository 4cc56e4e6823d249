// What becomes of ordered updates of the agents of a fleet: most come back with the new version, and fixed shares fail, hang, get lost or come back wrong.
import { type AgentMachine, type CommandHandlers, createRandom, HandlerFailure, InvalidPayload, pause, type Time } from "../agent/index.ts";

/** `slow`: is not done when its time is over. `lost`: never comes back. `wrong`: comes back with another version. */
export type UpdateFate = "works" | "fails" | "slow" | "lost" | "wrong";
/** From 0 to 1, of the devices of the fleet. */
export type UpdateShares = Readonly<Partial<Record<Exclude<UpdateFate, "works">, number>>>;

const FATES = ["fails", "slow", "lost", "wrong"] as const;
const WRONG_VERSION = "0.0.1";
const SLOW_MS = 6 * 3_600_000;
const WORK_MS = 200;

/** Exactly these shares, rounded; the same devices for the same seed. */
export const updateFatesOf = (count: number, shares: UpdateShares, seed: number): readonly UpdateFate[] => {
  const random = createRandom(seed);
  const order = Array.from({ length: count }, (_, index) => ({ index, at: random() })).sort((a, b) => a.at - b.at);
  const fates: UpdateFate[] = Array.from({ length: count }, () => "works");
  const rest = order[Symbol.iterator]();
  for (const fate of FATES)
    for (let left = Math.round(count * (shares[fate] ?? 0)); left > 0; left -= 1) {
      const next = rest.next();
      if (!next.done) fates[next.value.index] = fate;
    }
  return fates;
};

export const machineWith = (machine: AgentMachine, agentVersion: string): AgentMachine => ({
  ...machine,
  agentVersion,
  inventory: () => ({ ...machine.inventory(), agentVersion }),
});

export interface UpdateOptions {
  readonly fate: UpdateFate;
  readonly time: Time;
  /** The agent ends and comes back with this version; null: it does not come back. */
  readonly restart: (version: string | null) => void;
}

export const createUpdateHandlers = ({ fate, time, restart }: UpdateOptions): CommandHandlers => ({
  "agent-update": {
    long: true,
    cancelable: false,
    run: async (payload, { signal }) => {
      const version = (payload as { readonly version?: unknown } | null)?.version; // as: looked at below
      if (typeof version !== "string") throw new InvalidPayload("version must be a text");
      await pause(time, fate === "slow" ? SLOW_MS : WORK_MS, signal);
      signal.throwIfAborted();
      if (fate === "fails") throw new HandlerFailure("UPDATE_FAILED", { version, message: `${version} did not start (simulated)` });
      // The agent ends after it has reported this result.
      restart(fate === "lost" ? null : fate === "wrong" ? WRONG_VERSION : version);
      return { version };
    },
  },
});
