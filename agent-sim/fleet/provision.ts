// Provisions devices for simulated machines.
import { randomUUID } from "node:crypto";
import type { PairedDevice, RetryOptions } from "../agent/index.ts";
import type { SimulatedMachine } from "./machines.ts";
import type { Portal } from "./portal.ts";

/** The most that one call takes. */
const CHUNK = 1_000;

/** Groups of machines that people would describe alike. */
const alikeIn = (machines: readonly SimulatedMachine[]): readonly (readonly SimulatedMachine[])[] => {
  const groups = new Map<string, SimulatedMachine[]>();
  for (const machine of machines) {
    const key = JSON.stringify([machine.platform, machine.tags]);
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(machine);
  }
  return [...groups.values()].flatMap((group) => Array.from({ length: Math.ceil(group.length / CHUNK) }, (_, n) => group.slice(n * CHUNK, (n + 1) * CHUNK)));
};

/** In the order of the machines; fewer when the signal aborts. Machines that people would describe alike share calls. */
export const provision = async (
  portal: Pick<Portal, "provision">,
  machines: readonly SimulatedMachine[],
  retry: RetryOptions,
): Promise<readonly PairedDevice[]> => {
  const run = randomUUID().slice(0, 8);
  const fingerprintOf = ({ name }: SimulatedMachine): string => `sim-${run}-${name}`;
  const known = new Map<string, PairedDevice>();
  for (const alike of alikeIn(machines)) {
    const [first] = alike;
    if (first === undefined || retry.signal?.aborted) break;
    const { platform, tags } = first;
    for (const device of await portal.provision(alike.map(fingerprintOf), randomUUID(), retry, { platform, tags })) known.set(device.fingerprint, device);
  }
  return machines.flatMap((machine) => known.get(fingerprintOf(machine)) ?? []);
};
