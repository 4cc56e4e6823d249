// Devices by what decides which applications they can run.
import type { SystemScope } from "../scope.ts";

/** Figures that applications ask for, each list in ascending order. */
export interface MachineSteps {
  readonly memory: readonly number[];
  readonly disk: readonly number[];
}

export interface MachineGroup {
  readonly arch: string | null;
  readonly runtimes: readonly string[] | null;
  /** The highest step that these machines reach. */
  readonly hardware: { readonly memoryBytes: number | null; readonly diskBytes: number | null };
  readonly devices: number;
  readonly first: { readonly deviceId: string; readonly name: string | null };
}

/** Groups the devices of a caller in one read, however many there are. */
export type GroupMachines = (scope: SystemScope, steps: MachineSteps) => Promise<readonly MachineGroup[]>;
