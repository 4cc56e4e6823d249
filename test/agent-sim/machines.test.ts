// The machines of a simulated fleet: names, platforms, versions and tags from a seed, and figures that move.
import { describe, expect, test } from "vitest";
import { AGENT_VERSION, type PairedDevice, type RetryOptions } from "../../agent-sim/agent/index.ts";
import { createFleetMachines, type FleetMachines, type SimulatedMachine } from "../../agent-sim/fleet/machines.ts";
import { provision } from "../../agent-sim/fleet/provision.ts";
import { createFastTime } from "./clocks.ts";

const NOON = Date.parse("2026-06-01T12:00:00Z");
const HOUR = 3_600_000;
const at = (wallMs: number) => ({ wallMs: () => wallMs });
const fleet = (count: number, given: Partial<FleetMachines> = {}) => createFleetMachines({ count, seed: 1, time: at(NOON), ...given });
const told = (machines: readonly SimulatedMachine[]) => machines.map(({ metrics, inventory, ...rest }) => ({ ...rest, ...metrics(), ...inventory() }));
/** The figures of one machine of the fleet at these moments. */
const figuresOf = (index: number, moments: readonly number[], given: Partial<FleetMachines> = {}): readonly Readonly<Record<string, number>>[] => {
  let nowMs = 0;
  const machine = fleet(index + 1, { time: { wallMs: () => nowMs }, ...given })[index];
  return moments.map((moment) => {
    nowMs = moment;
    return machine?.metrics() ?? {};
  });
};
const every = (stepMs: number, count: number, from = NOON): readonly number[] => Array.from({ length: count }, (_, n) => from + n * stepMs);
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

describe("machines", () => {
  test("a name says the site, the role and the number, and nobody else has it", () => {
    const machines = fleet(1_000);
    expect(machines[0]).toMatchObject({ name: "berlin-01-gw-01", hostname: "berlin-01-gw-01", site: "berlin-01" });
    for (const { name, site, tags } of machines) {
      expect(name).toMatch(/^[a-z]+-\d{2,}-(gw|nas|pos|kiosk|cam)-0[1-5]$/);
      expect(name.startsWith(`${site}-`)).toBe(true);
      expect(tags).toHaveLength(2);
    }
    expect(new Set(machines.map(({ name }) => name)).size).toBe(1_000);
  });
  test("the same seed makes the same machines and figures, a larger fleet begins with a smaller one, and another seed makes others", () => {
    expect(told(fleet(50))).toEqual(told(fleet(50)));
    expect(told(fleet(50)).slice(0, 25)).toEqual(told(fleet(25)));
    expect(told(fleet(50, { seed: 2 }))).not.toEqual(told(fleet(50)));
  });
  test("a fleet has several platforms, architectures and tags, and a few agents of older versions", () => {
    const machines = fleet(100);
    const kinds = (of: (machine: SimulatedMachine) => string): number => new Set(machines.map(of)).size;
    expect(kinds(({ os }) => os)).toBeGreaterThanOrEqual(3);
    expect(kinds(({ arch }) => arch)).toBeGreaterThanOrEqual(3);
    expect(kinds(({ tags }) => tags.join())).toBeGreaterThanOrEqual(8);
    const current = machines.filter(({ agentVersion }) => agentVersion === AGENT_VERSION).length;
    expect(current).toBeGreaterThan(60);
    expect(current).toBeLessThan(100);
  });
});

describe("figures", () => {
  test.each([0, 1, 2, 3, 4])("of machine %i move from heartbeat to heartbeat and stay possible", (index) => {
    const day = figuresOf(index, every(30_000, 2_880));
    for (const figure of ["cpu", "memory", "temperature"]) {
      const values = day.map((each) => each[figure] ?? Number.NaN);
      const changed = values.filter((value, n) => n > 0 && value !== values[n - 1]).length;
      expect(changed, figure).toBeGreaterThan(values.length / 2);
    }
    for (const figure of ["cpu", "memory", "disk"])
      for (const each of day) {
        expect(each[figure]).toBeGreaterThanOrEqual(0);
        expect(each[figure]).toBeLessThanOrEqual(100);
      }
    expect(day.every(({ uptimeSeconds }) => Number.isInteger(uptimeSeconds))).toBe(true);
  });
  test("the processor has more to do by day than by night, in its own time zone", () => {
    const cpuFrom = (from: number): number => mean(figuresOf(2, every(60_000, 120, from)).map(({ cpu }) => cpu ?? 0));
    expect(cpuFrom(NOON)).toBeGreaterThan(cpuFrom(NOON + 12 * HOUR) + 15);
    // The first till of Osaka.
    const osaka = (from: number): number => mean(figuresOf(17, every(60_000, 120, from)).map(({ cpu }) => cpu ?? 0));
    expect(osaka(NOON - 9 * HOUR)).toBeGreaterThan(osaka(NOON) + 5);
  });
  test("the disk fills slowly until somebody tidies up", () => {
    const disks = figuresOf(1, every(HOUR, 24 * 9)).map(({ disk }) => disk ?? 0);
    const steps = disks.slice(1).map((disk, n) => disk - (disks[n] ?? 0));
    expect(steps.filter((step) => step < -2)).toHaveLength(1);
    expect(mean(steps.filter((step) => step >= -2))).toBeGreaterThan(0);
  });
  test("a machine in trouble shows it", () => {
    const [now] = figuresOf(4, [NOON], { troubles: new Map([[4, "full"]]) });
    expect(now?.["disk"]).toBeGreaterThan(95);
    const [hot] = figuresOf(3, [NOON], { troubles: new Map([[3, "hot"]]) });
    const [well] = figuresOf(3, [NOON]);
    expect(hot?.["temperature"]).toBeGreaterThan((well?.["temperature"] ?? 0) + 20);
  });
});

describe("provisioning", () => {
  const retry: RetryOptions = { time: createFastTime(), random: () => 0, untilMs: Number.POSITIVE_INFINITY };
  const deviceOf = (fingerprint: string): PairedDevice => ({ deviceId: `dev_${fingerprint}`, agentId: "", tenantId: "", secret: "", fingerprint });
  test("keeps the order of the machines, and those alike share calls of at most 1,000", async () => {
    const calls: { readonly size: number; readonly about: unknown }[] = [];
    const machines = fleet(12_000);
    const members = await provision(
      {
        provision: async (fingerprints, _key, _retry, about) => {
          calls.push({ size: fingerprints.length, about });
          return fingerprints.toReversed().map(deviceOf);
        },
      },
      machines,
      retry,
    );
    expect(members.map(({ fingerprint }) => fingerprint.replace(/^sim-[0-9a-f]{8}-/, ""))).toEqual(machines.map(({ name }) => name));
    expect(Math.max(...calls.map(({ size }) => size))).toBe(1_000);
    expect(calls.length).toBeLessThan(40);
    expect(calls[0]?.about).toEqual({ platform: machines[0]?.platform, tags: machines[0]?.tags });
  });
  test("ends early when the run is aborted", async () => {
    const signal = AbortSignal.abort();
    expect(await provision({ provision: async (fingerprints) => fingerprints.map(deviceOf) }, fleet(10), { ...retry, signal })).toEqual([]);
  });
});
