// Which of a caller's devices can run the applications of the catalogue, counted over groups of like machines.
import { type APP_LACKS, type AppFits, type DeviceId, lacksOf, leastBytes } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import type { GroupMachines, MachineGroup, MachineSteps } from "../../core/ports/machine-groups.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { AppCatalogue, TemplateFacts } from "./catalogue/load.ts";

export interface FitsDeps {
  readonly catalogue: AppCatalogue;
  readonly machineGroups: GroupMachines;
}

const ascending = (figures: readonly number[]): readonly number[] => [...new Set(figures)].sort((a, b) => a - b);

const fitsAmong = (groups: readonly MachineGroup[], template: TemplateFacts): AppFits => {
  const count = { devices: 0, total: 0 };
  const lacking = { architecture: 0, runtime: 0, memory: 0, disk: 0 } satisfies Record<(typeof APP_LACKS)[number], number>;
  let last: MachineGroup["first"] | null = null;
  for (const group of groups) {
    const lacks = lacksOf(template, group);
    count.total += group.devices;
    for (const lack of lacks) lacking[lack] += group.devices;
    if (lacks.length > 0) continue;
    count.devices += group.devices;
    last = group.first;
  }
  // as: a row's id
  const only = count.devices === 1 && last !== null ? { deviceId: last.deviceId as DeviceId, name: last.name } : null;
  return { ...count, only, lacking };
};

/** Answers null for callers who may not read devices. */
export const createFits = ({ catalogue, machineGroups }: FitsDeps) => {
  const least = catalogue.entries.map(({ template }) => leastBytes(template.requirements));
  const steps: MachineSteps = { memory: ascending(least.map(({ memory }) => memory)), disk: ascending(least.map(({ disk }) => disk)) };
  return async (scope: SystemScope): Promise<(template: TemplateFacts) => AppFits | null> => {
    if (!permissionsIn(scope).has("device:read")) return () => null;
    const groups = await machineGroups(scope, steps);
    return (template) => fitsAmong(groups, template);
  };
};
