// Finds the operation of a method and a path in a tree of path segments; a field matches any one segment.
import type { Auth, Method, Rest } from "../../../protocol/index.ts";
import type { Entry } from "../call/operation-table.ts";

export interface Route {
  /** Operations at this place; more than one differ in the credential they take. */
  readonly entries: readonly { readonly entry: Entry; readonly rest: Rest; readonly canonical: boolean; readonly fields: readonly string[] }[];
}

interface Node {
  readonly children: Map<string, Node>;
  field: Node | null;
  readonly methods: Map<string, { entry: Entry; rest: Rest; canonical: boolean; fields: readonly string[] }[]>;
}

export type Match =
  | { readonly kind: "found"; readonly route: Route; readonly values: readonly string[] }
  | { readonly kind: "wrong method"; readonly allow: readonly string[] }
  | { readonly kind: "none" };

const newNode = (): Node => ({ children: new Map(), field: null, methods: new Map() });
const split = (path: string): readonly string[] => path.split("/").slice(1);

/** Answers the node of the route, and whether its path has no fields. */
const insert = (root: Node, entry: Entry, rest: Rest): { readonly node: Node; readonly named: boolean } => {
  const [method = "", template = ""] = rest.split(" ") as [Method, string];
  const fields: string[] = [];
  let node = root;
  for (const segment of template === "/" ? [] : split(template)) {
    const field = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (field !== undefined) fields.push(field);
    const next = field === undefined ? (node.children.get(segment) ?? newNode()) : (node.field ?? newNode());
    if (field === undefined) node.children.set(segment, next);
    else node.field = next;
    node = next;
  }
  node.methods.set(method, [...(node.methods.get(method) ?? []), { entry, rest, canonical: entry.op.rest[0] === rest, fields }]);
  return { node, named: fields.length === 0 };
};

const NO_VALUES: readonly string[] = [];

const walk = (node: Node, segments: readonly string[], at = 0, values = NO_VALUES): { node: Node; values: readonly string[] } | null => {
  const segment = segments[at];
  if (segment === undefined) return node.methods.size > 0 ? { node, values } : null;
  const exact = node.children.get(segment);
  const found = exact === undefined ? null : walk(exact, segments, at + 1, values);
  if (found !== null) return found;
  return node.field === null || segment === "" ? null : walk(node.field, segments, at + 1, [...values, segment]);
};

const MAX_SEGMENTS = 12;

export const createRouter = (entries: readonly Entry[]) => {
  const root = newNode();
  // A path without fields is found by its name; the walk prefers it too.
  const byName = new Map<string, { readonly node: Node; readonly values: readonly string[] }>();
  for (const entry of entries)
    for (const rest of entry.op.rest) {
      const { node, named } = insert(root, entry, rest);
      if (named) byName.set(rest.slice(rest.indexOf(" ") + 1), { node, values: NO_VALUES });
    }
  const search = (path: string): { readonly node: Node; readonly values: readonly string[] } | null => {
    const segments = path === "" || path === "/" ? [] : split(path);
    return segments.length > MAX_SEGMENTS ? null : walk(root, segments);
  };
  /** `path` stands below the prefix; one slash at its end is tolerated. Values are still encoded. */
  return (method: string, path: string): Match => {
    const trimmed = path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
    const found = byName.get(trimmed) ?? search(trimmed);
    if (found === null) return { kind: "none" };
    const at = found.node.methods.get(method === "HEAD" ? "GET" : method);
    if (at !== undefined) return { kind: "found", route: { entries: at }, values: found.values };
    const allow = [...found.node.methods.keys()];
    return { kind: "wrong method", allow: [...allow, ...(allow.includes("GET") ? ["HEAD"] : []), "OPTIONS"] };
  };
};

/** The operation at this place that takes the credential, else the first one, which will refuse it. */
export const pick = (route: Route, kind: Auth | "none"): Route["entries"][number] => {
  const fit = route.entries.find(({ entry }) => entry.op.auth.includes("public") || (kind !== "none" && entry.op.auth.includes(kind)));
  const chosen = fit ?? route.entries[0];
  if (chosen === undefined) throw new Error("a route without operations");
  return chosen;
};
