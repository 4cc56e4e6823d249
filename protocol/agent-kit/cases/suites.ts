// The suites of the kit, in the order in which agents grow.
import type { KitCase, Suite } from "../kit-case.ts";
import { apps } from "./apps.ts";
import { carrier } from "./carrier.ts";
import { coreConnect } from "./core-connect.ts";
import { coreRun } from "./core-run.ts";
import { coreWaits } from "./core-waits.ts";
import { more } from "./more.ts";
import { poll } from "./poll.ts";
import { strong } from "./strong.ts";

export const SUITES: readonly Suite[] = [
  { name: "core", about: "level 1: every agent", cases: [...coreConnect, ...coreRun, ...coreWaits] },
  { name: "poll", about: "level 2: agents that poll where no WebSocket passes", cases: poll },
  { name: "more", about: "level 2: several commands at once, lists, progress, cancel", cases: more },
  { name: "strong", about: "level 3: signatures v2, handoff, rotation of the secret", cases: strong },
  { name: "apps", about: "agents that run apps", cases: apps },
  { name: "carrier", about: "agents that serve tunnels", cases: carrier },
];

export const allCases = (): readonly (KitCase & { readonly suite: string })[] => SUITES.flatMap(({ name, cases }) => cases.map((each) => ({ ...each, suite: name })));
