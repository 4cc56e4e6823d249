// The suites of the kit, in the order in which agents grow.
import type { KitCase, Suite } from "../kit-case.ts";
import { coreConnect } from "./core-connect.ts";
import { coreRun } from "./core-run.ts";
import { coreWaits } from "./core-waits.ts";

export const SUITES: readonly Suite[] = [{ name: "core", about: "level 1: every agent", cases: [...coreConnect, ...coreRun, ...coreWaits] }];

export const allCases = (): readonly (KitCase & { readonly suite: string })[] => SUITES.flatMap(({ name, cases }) => cases.map((each) => ({ ...each, suite: name })));
