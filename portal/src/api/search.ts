// Search parameters of screens: what a URL says, as far as it makes sense. Anything else is left out, so an old or mistyped link still opens.

export type Search = Readonly<Record<string, unknown>>;

export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" ? String(value).slice(0, 200) || undefined : undefined;
export const oneOf = <const T extends string>(value: unknown, allowed: readonly T[]): T | undefined => allowed.find((each) => each === value);

/** Without the parameters that are not set. */
export const given = <T extends object>(search: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
