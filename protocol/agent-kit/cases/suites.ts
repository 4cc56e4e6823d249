// The suites of the kit, in the order in which agents grow.
import type { KitCase, Suite } from "../kit-case.ts";
import { appCases } from "./apps.ts";
import { carrierCases } from "./carrier.ts";
import { coreConnect } from "./core-connect.ts";
import { coreJournal } from "./core-journal.ts";
import { coreRun } from "./core-run.ts";
import { coreWaits } from "./core-waits.ts";
import { moreCases } from "./more.ts";
import { pollCases } from "./poll.ts";
import { strongCases } from "./strong.ts";

export const SUITES: readonly Suite[] = [
  { name: "core", about: "level 1: every agent", cases: [...coreConnect, ...coreRun, ...coreJournal, ...coreWaits] },
  { name: "poll", about: "level 2: agents that poll where no WebSocket passes", cases: pollCases },
  { name: "more", about: "level 2: several commands at once, lists, progress, cancel", cases: moreCases },
  { name: "strong", about: "level 3: signatures v2, handoff, rotation of the secret", cases: strongCases },
  { name: "apps", about: "agents that run apps", cases: appCases },
  { name: "carrier", about: "agents that serve tunnels", cases: carrierCases },
];

export const allCases = (): readonly (KitCase & { readonly suite: string })[] =>
  SUITES.flatMap(({ name, cases }) => cases.map((each) => ({ ...each, suite: name })));
