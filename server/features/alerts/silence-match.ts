// Which targets a silence matches. A pattern is never compiled to a regular expression: of those a tenant could write one that stops the node.
// It has literal text, `.*` and `|` only, so that matching takes linear time, and means what it means as a regular expression.
import { SilenceMatcher } from "../../../protocol/index.ts";
import type { Silenceable, SilenceRow } from "./store/incidents.ts";

/** The literal texts between the `.*` of each alternative. */
const parse = (pattern: string): readonly (readonly string[])[] => {
  const alternatives: string[][] = [[""]];
  for (const [sign] of pattern.matchAll(/\.\*|\\.|[\s\S]/g)) {
    const parts = alternatives.at(-1) ?? [];
    if (sign === "|") alternatives.push([""]);
    else if (sign === ".*") parts.push("");
    else parts.push((parts.pop() ?? "") + sign.replace("\\", sign.length === 2 ? "" : "\\"));
  }
  return alternatives;
};

const fits = (parts: readonly string[], value: string): boolean => {
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return value === first;
  if (!value.startsWith(first) || value.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of rest) {
    const found = value.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return value.endsWith(last) && value.length - last.length >= at;
};

export const createTest = ({ value: wanted, isRegex }: Pick<SilenceMatcher, "value" | "isRegex">): ((value: string) => boolean) => {
  if (!isRegex) return (value) => value === wanted;
  const alternatives = parse(wanted);
  return (value) => alternatives.some((parts) => fits(parts, value));
};

const VALUES: Readonly<Record<SilenceMatcher["name"], (target: Silenceable) => readonly string[]>> = {
  ruleId: ({ rule_id }) => [rule_id],
  rule: ({ rule_name }) => [rule_name],
  type: ({ type }) => [type],
  severity: ({ severity }) => [severity],
  deviceId: ({ is_device, target_id }) => (is_device ? [target_id] : []),
  device: ({ is_device, name }) => (is_device && name !== null ? [name] : []),
  tag: ({ tags }) => tags,
};

type Matches = (target: Silenceable) => boolean;
const matchesAll = (stored: unknown): Matches => {
  const matchers = SilenceMatcher.array()
    .parse(stored)
    .map((matcher) => ({ of: VALUES[matcher.name], test: createTest(matcher) }));
  return (target) => matchers.every(({ of, test }) => of(target).some(test));
};

/** Whether one of the silences of its tenant matches a target. */
export const createSilenced = (silences: readonly SilenceRow[]): Matches => {
  const byTenant = new Map<string, Matches[]>();
  for (const { tenant_id, matchers } of silences) byTenant.set(tenant_id, [...(byTenant.get(tenant_id) ?? []), matchesAll(matchers)]);
  return (target) => (byTenant.get(target.tenant_id) ?? []).some((matches) => matches(target));
};
