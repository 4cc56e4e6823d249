// The operations at each path. Aliases get ids of their own; two operations with one method and path but different credentials become one.
import { guideOf } from "../../../protocol/guide/index.ts";
import type { Rest } from "../../../protocol/index.ts";
import type { Entry } from "../call/operation-table.ts";
import type { Versions } from "../rest/versions.ts";
import { askedOf, type Parameter, type Place } from "./parameters.ts";
import type { Responses } from "./responses.ts";
import type { Json, Schemas } from "./schemas.ts";
import { securityOf } from "./security.ts";

const placeOf = (rest: Rest): Place => {
  const [method = "", path = ""] = rest.split(" ");
  return { method, path };
};

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1).toLowerCase()}`;
/** `/hosts/{deviceId}/commands` as `HostsCommands`. */
const pascal = (path: string): string =>
  path
    .replaceAll(/\{\w+\}/g, "")
    .split(/[^A-Za-z0-9]+/)
    .map(capital)
    .join("");

/** Client generators turn every id into a method, so aliases need their own: `devices.get`, and `devices.getViaHosts` for its alias. */
const operationId = ({ id, op }: Entry, { method, path }: Place): string => {
  const first = placeOf(op.rest[0] ?? "GET /");
  if (method === first.method && path === first.path) return id;
  return `${id}Via${path === first.path ? capital(method) : pascal(path)}`;
};

const descriptionOf = ({ id, op }: Entry, { method, path }: Place): string => {
  const first = op.rest[0];
  const text = op.description ?? guideOf(id).description ?? "";
  return first === `${method} ${path}` ? text : `${text}\n\nThe same as \`${first}\`.`;
};

/** An agent polls at the path where a portal lists, so the description says which text is for whom. */
const descriptionOfAll = (entries: readonly Entry[], place: Place): string =>
  entries
    .map(
      (entry) => `**${entry.op.auth.includes("agent") ? "As an agent" : "As a user or with an API key"}:** ${entry.op.summary}. ${descriptionOf(entry, place)}`,
    )
    .join("\n\n");

/** Two operations may limit a common parameter differently. */
const joinParameters = (first: readonly Parameter[], second: readonly Parameter[]): readonly Parameter[] => [
  ...first.map((each) => {
    const other = second.find(({ name, in: at }) => name === each.name && at === each.in);
    const isSame = other === undefined || JSON.stringify(each.schema) === JSON.stringify(other.schema);
    return isSame ? each : { ...each, schema: { anyOf: [each.schema, other.schema] } };
  }),
  ...second.filter(({ name, in: at }) => !first.some((each) => each.name === name && each.in === at)),
];

interface Parts {
  readonly schemas: Schemas;
  readonly responses: Responses;
  readonly versions: Versions;
}

const operationAt = ({ schemas, responses, versions }: Parts, place: Place, entries: readonly [Entry, ...Entry[]]): Json => {
  const [first, ...others] = entries;
  const asked = entries.map(({ id, op }) => askedOf({ schemas, versions }, op, place, guideOf(id)));
  const body = asked.find(({ requestBody }) => requestBody !== null)?.requestBody;
  return {
    operationId: operationId(first, place),
    tags: [first.tag],
    summary: entries.map(({ op }) => op.summary).join(" · "),
    description: others.length === 0 ? descriptionOf(first, place) : descriptionOfAll(entries, place),
    ...(entries.every(({ op }) => op.deprecated !== undefined) ? { deprecated: true } : {}),
    security: entries.flatMap(({ op }) => securityOf(op)),
    parameters: asked.map(({ parameters }) => parameters).reduce(joinParameters),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: responses.of(entries),
    "x-permission": first.op.permission,
    "x-rate-limit": first.op.limit,
  };
};

export const pathsOf = (parts: Parts, entries: readonly Entry[]): Json => {
  const places = new Map<Rest, [Entry, ...Entry[]]>();
  for (const entry of entries)
    for (const rest of entry.op.rest) {
      const there = places.get(rest);
      if (there === undefined) places.set(rest, [entry]);
      else there.push(entry);
    }
  const paths: Record<string, Record<string, Json>> = {};
  for (const [rest, sharing] of places) {
    const place = placeOf(rest);
    paths[place.path] = { ...paths[place.path], [place.method.toLowerCase()]: operationAt(parts, place, sharing) };
  }
  return paths;
};
