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

/** The only one of these that is called so. */
const only = <R>(kind: string, name: string, found: readonly R[], idOf: (one: R) => string): R => {
  const [one, ...others] = found;
  if (one === undefined) throw new Refusal(`there is no ${kind} ${name}`);
  if (others.length > 0) throw new Refusal(`several ${kind}s are called ${name}; name one by its id: ${found.map(idOf).join(", ")}`);
  return one;
};

export const deviceNamed = async (mooring: Mooring, named: string): Promise<Device> => {
  if (named.startsWith("dev_")) return mooring.devices.get.query({ deviceId: named });
  const found = await allOf((page) => mooring.devices.list.query({ ...page, q: named }));
  return only(
    "device",
    named,
    found.filter(({ name, hostname }) => name === named || hostname === named),
    ({ deviceId }) => deviceId,
  );
};

export const appNamed = async (mooring: Mooring, named: string): Promise<AppDetails> => {
  if (named.startsWith("app_")) return mooring.apps.get.query({ appId: named });
  const found = await allOf((page) => mooring.apps.list.query({ ...page, q: named }));
  return only(
    "app",
    named,
    found.filter(({ name }) => name === named),
    ({ appId }) => appId,
  );
};

export const fleetNamed = async (mooring: Mooring, named: string): Promise<{ readonly fleetId: string }> => {
  if (named.startsWith("flt_")) return { fleetId: named };
  const found = await allOf((page) => mooring.fleets.list.query({ ...page, q: named }));
  return only(
    "fleet",
    named,
    found.filter(({ name }) => name === named),
    ({ fleetId }) => fleetId,
  );
};

export const policyNamed = async (mooring: Mooring, named: string): Promise<{ readonly updatePolicyId: string }> => {
  if (named.startsWith("upl_")) return { updatePolicyId: named };
  const found = await allOf((page) => mooring.rollouts.listPolicies.query({ ...page, q: named }));
  return only(
    "update policy",
    named,
    found.filter(({ name }) => name === named),
    ({ updatePolicyId }) => updatePolicyId,
  );
};
