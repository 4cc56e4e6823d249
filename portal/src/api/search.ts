// Search parameters of screens: what a URL says, as far as it makes sense. Anything else is left out, so an old or mistyped link still opens.

export type Search = Readonly<Record<string, unknown>>;

export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" ? String(value).slice(0, 200) || undefined : undefined;
export const oneOf = <const T extends string>(value: unknown, allowed: readonly T[]): T | undefined => allowed.find((each) => each === value);

/** Without the parameters that are not set. */
export const given = <T extends object>(search: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };

/** The parameters of these names, each as it is written. */
export const textsOf = <const K extends string>(search: Search, names: readonly K[]) =>
  given(Object.fromEntries(names.map((name) => [name, textOf(search[name])])) as Record<K, string | undefined>);

/** What the lists of tunnels, domains and mesh routes are asked for. They know their states themselves. */
export const readNetworkSearch = (search: Search) => textsOf(search, ["q", "status", "approval"]);
