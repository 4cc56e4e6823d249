// Who plays in the demo: its machines, what is wrong with some of them, and who is switched off.
import type { AppFailures } from "../fleet/fleet-apps.ts";
import { createFleetMachines, type FleetMachines, type SimulatedMachine, type Trouble } from "../fleet/machines.ts";

export interface CastMember {
  /** The same in every run, so that a later demo takes over the devices of an earlier one. */
  readonly fingerprint: string;
  readonly machine: SimulatedMachine;
  readonly appFailures: AppFailures | undefined;
  /** `away`: connects, reports once and is switched off. `new`: was paired and never switched on. */
  readonly part: "present" | "away" | "new";
}

/** A camera whose recordings fill its disk. No app finds space there. */
export const FULL = 9;
/** A kiosk in a closed cupboard. Its apps start, but fail their health check. */
export const HOT = 13;
const TROUBLES: ReadonlyMap<number, Trouble> = new Map([
  [FULL, "full"],
  [HOT, "hot"],
]);
const FAILURES: ReadonlyMap<number, AppFailures> = new Map([
  [FULL, { preparing: 1 }],
  [HOT, { health: 1 }],
]);
/** One is switched off, and waits for a deployment. */
export const AWAY = 12;
const PARTS: ReadonlyMap<number, CastMember["part"]> = new Map([
  [AWAY, "away"],
  [18, "away"],
  [24, "new"],
]);

export const castDemo = (wanted: Omit<FleetMachines, "troubles">): readonly CastMember[] =>
  createFleetMachines({ ...wanted, troubles: TROUBLES }).map((machine, index) => ({
    fingerprint: `demo-device-${String(index + 1).padStart(3, "0")}`,
    machine,
    appFailures: FAILURES.get(index),
    part: PARTS.get(index) ?? "present",
  }));
