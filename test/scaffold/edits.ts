// The lines that a new feature adds to existing files. An edit whose place is missing or ambiguous throws.

export interface Edit {
  readonly file: string;
  /** Must occur exactly once. */
  readonly at: string;
  readonly side: "before" | "after";
  readonly text: string;
}

const before = (file: string, at: string, text: string): Edit => ({ file, at, side: "before", text });
const after = (file: string, at: string, text: string): Edit => ({ file, at, side: "after", text });

export const EDITS: readonly Edit[] = [
  before("protocol/index.ts", 'import type { ErrorCode } from "./kit/errors.ts";', 'import { {{group}} } from "./groups/{{feature}}.ts";\n'),
  before("protocol/index.ts", "} as const satisfies Record<string, Group>;", "  {{group}},\n"),
  before("protocol/index.ts", 'export * from "./kit/command-type.ts";', 'export * from "./groups/{{feature}}.ts";\n'),
  after("protocol/kit/ids.ts", "export const ID_NAMES: ReadonlyMap<string, string> = new Map([\n", '  ["{{prefix}}", "{{word}}"],\n'),
  before("protocol/kit/errors.ts", "  NODE_NOT_FOUND:", '  {{CODE}}_NOT_FOUND: row(404, "{{Word}} {{{record}}Id} was not found."),\n'),
  after("protocol/kit/permissions.ts", "  viewer: [", '"{{permission}}:read", '),
  after("protocol/kit/permissions.ts", "  operator: [", '"{{permission}}:write", '),
  after(
    "protocol/kit/permissions.ts",
    "export const DESCRIBED: Readonly<Record<Permission, Described>> = {\n",
    '  "{{permission}}:read": row("tenant", "low", "See {{words}}"),\n  "{{permission}}:write": row("tenant", "medium", "Create, change and delete {{words}}"),\n',
  ),
  before("protocol/guide/index.ts", "\nexport type { OperationGuide }", 'import { {{group}} } from "./{{feature}}.ts";\n'),
  after("protocol/guide/index.ts", "const GUIDES: { readonly [G in keyof Contract]?: Readonly<Record<string, OperationGuide>> } = {\n", "  {{group}},\n"),
  before("protocol/guide/index.ts", "  Audit:", '  "{{Words}}": "{{Words}} of a tenant.",\n'),
  before("prisma/schema/tenants.prisma", '\n  @@map("tenants")', "  {{group}} {{Record}}[]\n"),
  before("server/wiring/workloads.ts", 'import type { Wiring } from "./deps.ts";', 'import { create{{Records}} } from "../features/{{feature}}/index.ts";\n'),
  before("server/wiring/workloads.ts", "  deployments: () =>", "  {{group}}: () => create{{Records}}(kit),\n"),
  before(
    "test/contract/samples.ts",
    "};\n\n/** A value as text",
    `  "{{group}}.list": nothing,
  "{{group}}.get": ofNew("/v1/{{feature}}", "{{record}}Id"),
  "{{group}}.create": async () => ({ name: "sample" }),
  "{{group}}.update": async (stock) => ({ ...(await ofNew("/v1/{{feature}}", "{{record}}Id")(stock)), name: "renamed" }),
  "{{group}}.remove": ofNew("/v1/{{feature}}", "{{record}}Id"),
`,
  ),
  before(
    "test/contract/errors.test.ts",
    "  NODE_NOT_FOUND:",
    '  {{CODE}}_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/{{feature}}/{{prefix}}_unknown")),\n',
  ),
  before(
    "portal/src/app/router.tsx",
    "const signIn = createRoute",
    `const {{group}} = createRoute({
  getParentRoute: () => root,
  path: "/{{feature}}",
  component: lazyRouteComponent(() => import("../screens/{{feature}}/{{feature}}.tsx"), "{{Records}}Screen"),
});
const {{record}} = createRoute({
  getParentRoute: () => root,
  path: "/{{feature}}/\${{record}}Id",
  component: lazyRouteComponent(() => import("../screens/{{feature}}/{{feature}}.tsx"), "{{Record}}Screen"),
});
`,
  ),
  before("portal/src/app/router.tsx", "    signIn,\n", "    {{group}},\n    {{record}},\n"),
  before("portal/src/app/places.ts", '  { to: "/members"', '  { to: "/{{feature}}", word: "{{Words}}", under: "/settings", needs: "{{permission}}:read" },\n'),
  before("portal/src/api/freshness.ts", '  ["member", [', '  ["{{permission}}", ["{{group}}"]],\n'),
];

/** The path of each template's file. */
export const FILES: Readonly<Record<string, string>> = {
  group: "protocol/groups/{{feature}}.ts",
  guide: "protocol/guide/{{feature}}.ts",
  schema: "prisma/schema/{{feature}}.prisma",
  migration: "prisma/migrations/{{stamp}}_{{table}}/migration.sql",
  feature: "server/features/{{feature}}/index.ts",
  test: "test/features/{{feature}}/{{feature}}.test.ts",
  screen: "portal/src/screens/{{feature}}/{{feature}}.tsx",
  "screen-test": "test/portal/{{feature}}.test.ts",
};

export const applied = (text: string, { file, at, side }: Edit, addition: string): string => {
  const place = text.indexOf(at);
  if (place === -1 || text.indexOf(at, place + 1) !== -1)
    throw new Error(`${file} must contain ${JSON.stringify(at)} exactly once; update test/scaffold/edits.ts`);
  const cut = side === "before" ? place : place + at.length;
  return text.slice(0, cut) + addition + text.slice(cut);
};
