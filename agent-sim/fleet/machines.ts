// The machines of a simulated fleet, as a company with branches has them: named by site and number, of several platforms and agent versions. The same
// seed makes the same machines, and a larger fleet begins with those of a smaller one.
import { AGENT_VERSION, type AgentMachine, between, createRandom, type Inventory, type Random, type Time } from "../agent/index.ts";
import { createFigures, type Habits } from "./figures.ts";

export interface SimulatedMachine extends AgentMachine {
  /** As in `berlin-03-gw-07`. */
  readonly name: string;
  /** The kind of machine, as people name it when they pair one. */
  readonly platform: string;
  readonly site: string;
  /** Few machines share a site, and many share these. */
  readonly tags: readonly string[];
}

/** What is wrong with a machine. `full`: its disk is almost full. `hot`: it is throttled in a closed cupboard. */
export type Trouble = "full" | "hot";

interface Role {
  readonly name: string;
  readonly tag: string;
  readonly kinds: readonly Kind[];
  readonly model: string;
  readonly hardware: { readonly cpuCores: number; readonly memoryGiB: number; readonly diskGB: number };
  readonly habits: Omit<Habits, "utcOffsetHours">;
}

/** Cities with branches, and their hours from UTC. */
const HOURS_OF: ReadonlyMap<string, number> = new Map(Object.entries({ berlin: 1, lisbon: 0, oslo: 1, osaka: 9, toronto: -5, vienna: 1, porto: 0, leeds: 0 }));
const CITIES = [...HOURS_OF.keys()];
type Kind = readonly [os: string, arch: string];

const FIRST_KIND: Kind = ["linux", "arm64"];
const FIRST_ROLE: Role = {
  name: "gw",
  tag: "gateway",
  kinds: [FIRST_KIND],
  model: "Raspberry Pi 5 Model B",
  hardware: { cpuCores: 4, memoryGiB: 8, diskGB: 64 },
  habits: { cpu: 14, busy: 22, memory: 38, disk: 31 },
};
/** Each site has one of each, in this order: first the machine that all others need. */
const ROLES: readonly Role[] = [
  FIRST_ROLE,
  {
    name: "nas",
    tag: "storage",
    kinds: [
      ["linux", "x64"],
      ["freebsd", "x64"],
    ],
    model: "DXP4800 Plus",
    hardware: { cpuCores: 6, memoryGiB: 32, diskGB: 8_000 },
    habits: { cpu: 9, busy: 30, memory: 57, disk: 62 },
  },
  {
    name: "pos",
    tag: "till",
    kinds: [
      ["win32", "x64"],
      ["linux", "x64"],
    ],
    model: "ThinkCentre neo 50q Tiny Gen 4",
    hardware: { cpuCores: 8, memoryGiB: 16, diskGB: 512 },
    habits: { cpu: 11, busy: 38, memory: 46, disk: 44 },
  },
  {
    name: "kiosk",
    tag: "kiosk",
    kinds: [["linux", "x64"], FIRST_KIND],
    model: "Compute Module 4 Rev 1.1",
    hardware: { cpuCores: 4, memoryGiB: 4, diskGB: 32 },
    habits: { cpu: 22, busy: 26, memory: 51, disk: 28 },
  },
  {
    name: "cam",
    tag: "camera",
    kinds: [["linux", "arm"], FIRST_KIND],
    model: "Raspberry Pi 3 Model B Plus",
    hardware: { cpuCores: 4, memoryGiB: 1, diskGB: 32 },
    habits: { cpu: 34, busy: 14, memory: 63, disk: 71 },
  },
];
const DEVICES_PER_SITE = ROLES.length;

const SYSTEMS: ReadonlyMap<string, string> = new Map(Object.entries({ linux: "Debian GNU/Linux 13 (trixie)", freebsd: "14.3-RELEASE", win32: "10.0.26100" }));

const TROUBLES: Readonly<Record<Trouble, Partial<Habits>>> = { full: { disk: 96 }, hot: { cpu: 84, busy: 10, heat: 29 } };
/** Most machines have the version of this checkout; a few wait for their update. */
const OLDER_VERSIONS: readonly string[] = ["0.1.4", "0.1.2"];

const twoDigits = (n: number): string => String(n).padStart(2, "0");
const pick = <T>(random: Random, from: readonly T[], otherwise: T): T => from[Math.floor(random() * from.length)] ?? otherwise;
const versionOf = (random: Random): string => (random() < 0.8 ? AGENT_VERSION : pick(random, OLDER_VERSIONS, AGENT_VERSION));

export interface FleetMachines {
  readonly count: number;
  readonly seed: number;
  readonly time: Pick<Time, "wallMs">;
  /** By the index of the machine. */
  readonly troubles?: ReadonlyMap<number, Trouble>;
}

/** Cities take turns; each opens its next branch when all have one. */
const siteOf = (index: number): { readonly city: string; readonly site: string } => {
  const number = Math.floor(index / DEVICES_PER_SITE);
  const city = CITIES[number % CITIES.length] ?? "berlin";
  return { city, site: `${city}-${twoDigits(Math.floor(number / CITIES.length) + 1)}` };
};

const createMachine = (index: number, { seed, time, troubles }: FleetMachines): SimulatedMachine => {
  const random = createRandom(seed * 1_000_003 + index);
  const { city, site } = siteOf(index);
  const role = ROLES[index % DEVICES_PER_SITE] ?? FIRST_ROLE;
  const [os, arch] = pick(random, role.kinds, FIRST_KIND);
  const trouble = troubles?.get(index);
  const usual = Object.entries(role.habits).map(([figure, value]) => [figure, value * between(random, 0.8, 1.2)]);
  const habits: Habits = {
    ...role.habits,
    ...Object.fromEntries(usual),
    ...(trouble === undefined ? {} : TROUBLES[trouble]),
    utcOffsetHours: HOURS_OF.get(city) ?? 0,
  };
  const name = `${site}-${role.name}-${twoDigits((index % DEVICES_PER_SITE) + 1)}`;
  const agentVersion = versionOf(random);
  const { cpuCores, memoryGiB, diskGB } = role.hardware;
  const number = Math.floor(index / DEVICES_PER_SITE);
  const inventory: Inventory = {
    hostname: name,
    platform: os,
    arch,
    osVersion: SYSTEMS.get(os) ?? os,
    agentVersion,
    model: role.model,
    hardware: { cpuCores, memoryBytes: memoryGiB * 1_024 ** 3, diskBytes: diskGB * 1_000 ** 3 },
    runtimes: ["process", "compose"],
    // Each site has a network of its own.
    ipAddresses: [`10.${Math.floor(number / 256) % 256}.${number % 256}.${10 + (index % DEVICES_PER_SITE)}`],
  };
  return {
    name,
    hostname: name,
    os,
    arch,
    platform: os,
    agentVersion,
    site,
    tags: [`role:${role.tag}`, random() < 0.2 ? "ring:canary" : "ring:stable"],
    metrics: createFigures(seed * 7_919 + index, habits, time),
    inventory: () => inventory,
  };
};

export const createFleetMachines = (wanted: FleetMachines): readonly SimulatedMachine[] =>
  Array.from({ length: wanted.count }, (_, index) => createMachine(index, wanted));
