// What a deployment would change: a comparison that changes nothing.
import type { DeploymentPlan } from "../../../protocol/index.ts";
import type { Content } from "../apps/index.ts";

type Json = DeploymentPlan["changes"][number]["from"];
type Fields = Readonly<Record<string, Json>>;
const isFields = (value: Json): value is { [key: string]: Json } => typeof value === "object" && value !== null && !Array.isArray(value);
const isSame = (a: Json, b: Json): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Each value that differs, by its path. Lists are compared as a whole. */
export const differences = (from: Fields, to: Fields, above = ""): DeploymentPlan["changes"] =>
  [...new Set([...Object.keys(from), ...Object.keys(to)])].sort().flatMap((name) => {
    const [before = null, after = null] = [from[name], to[name]];
    const path = above === "" ? name : `${above}.${name}`;
    if (isFields(before) && isFields(after)) return differences(before, after, path);
    return isSame(before, after) ? [] : [{ path, from: before, to: after }];
  });

const fieldsOf = ({ templateVersion, config }: Pick<Content, "templateVersion" | "config">): Fields => ({ templateVersion, configuration: config });

export const compareContents = (now: Pick<Content, "templateVersion" | "config"> | null, then: Pick<Content, "templateVersion" | "config">) =>
  differences(now === null ? {} : fieldsOf(now), fieldsOf(then));
