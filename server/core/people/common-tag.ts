// What devices have in common, for people who look for one cause.

/** The tag that most of the devices have, if at least `least` have it; of several, the first by name. */
export const commonTag = (devices: readonly { readonly tags: readonly string[] }[], least: number): string | null => {
  const counts = new Map<string, number>();
  for (const tag of devices.flatMap(({ tags }) => tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  const [most] = [...counts].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return most !== undefined && most[1] >= least ? most[0] : null;
};
