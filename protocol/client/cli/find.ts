// Finds what a person names by its id or by its name, and reads lists to their end.
import type { AppDetails, Device } from "../../index.ts";
import type { Mooring } from "../index.ts";
import { Refusal } from "./refusal.ts";

const PAGE_SIZE = 100;
/** A list for people ends here; the API has the rest. */
const MOST = 10_000;

interface Page<R> {
  readonly items: readonly R[];
  readonly total?: number | undefined;
}
export const allOf = async <R>(read: (page: { readonly page: number; readonly pageSize: number }) => Promise<Page<R>>): Promise<readonly R[]> => {
  const rows: R[] = [];
  for (let page = 1; rows.length < MOST; page += 1) {
    const { items, total = 0 } = await read({ page, pageSize: PAGE_SIZE });
    rows.push(...items);
    if (items.length === 0 || rows.length >= total) break;
  }
  return rows;
};

interface Search<R> {
  readonly kind: string;
  readonly read: Parameters<typeof allOf<R>>[0];
  readonly namesOf: (row: R) => readonly (string | undefined)[];
  readonly idOf: (row: R) => string;
}
/** The only one that is called so: the API's search finds parts of names, too. */
const only = async <R>(named: string, { kind, read, namesOf, idOf }: Search<R>): Promise<R> => {
  const found = (await allOf(read)).filter((row) => namesOf(row).includes(named));
  const [one, ...others] = found;
  if (one === undefined) throw new Refusal(`there is no ${kind} ${named}`);
  if (others.length > 0) throw new Refusal(`several ${kind}s are called ${named}; name one by its id: ${found.map(idOf).join(", ")}`);
  return one;
};

export const deviceNamed = async (mooring: Mooring, named: string): Promise<Device> =>
  named.startsWith("dev_")
    ? mooring.devices.get.query({ deviceId: named })
    : only(named, {
        kind: "device",
        read: (page) => mooring.devices.list.query({ ...page, q: named }),
        namesOf: ({ name, hostname }) => [name, hostname],
        idOf: ({ deviceId }) => deviceId,
      });

export const appNamed = async (mooring: Mooring, named: string): Promise<AppDetails> =>
  named.startsWith("app_")
    ? mooring.apps.get.query({ appId: named })
    : only(named, {
        kind: "app",
        read: (page) => mooring.apps.list.query({ ...page, q: named }),
        namesOf: ({ name }) => [name],
        idOf: ({ appId }) => appId,
      });

export const fleetNamed = async (mooring: Mooring, named: string): Promise<{ readonly fleetId: string }> =>
  named.startsWith("flt_")
    ? { fleetId: named }
    : only(named, {
        kind: "fleet",
        read: (page) => mooring.fleets.list.query({ ...page, q: named }),
        namesOf: ({ name }) => [name],
        idOf: ({ fleetId }) => fleetId,
      });

export const policyNamed = async (mooring: Mooring, named: string): Promise<{ readonly updatePolicyId: string }> =>
  named.startsWith("upl_")
    ? { updatePolicyId: named }
    : only(named, {
        kind: "update policy",
        read: (page) => mooring.rollouts.listPolicies.query({ ...page, q: named }),
        namesOf: ({ name }) => [name],
        idOf: ({ updatePolicyId }) => updatePolicyId,
      });
