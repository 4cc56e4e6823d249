// What a deployment would change: a comparison that changes nothing.
import type { ConfigValue, DeploymentPlan } from "../../../protocol/index.ts";
import type { Content } from "../apps/index.ts";

type Compared = Pick<Content, "templateVersion" | "config">;

/** By path. */
const valuesOf = (content: Compared | null): ReadonlyMap<string, ConfigValue> =>
  content === null
    ? new Map()
    : new Map([
        ["templateVersion", content.templateVersion],
        ...Object.entries(content.config).map(([name, value]) => [`configuration.${name}`, value] as const),
      ]);

export const compareContents = (now: Compared | null, then: Compared): DeploymentPlan["changes"] => {
  const [before, after] = [valuesOf(now), valuesOf(then)];
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((path) => {
    const [from, to] = [before.get(path) ?? null, after.get(path) ?? null];
    return from === to ? [] : [{ path, from, to }];
  });
};
