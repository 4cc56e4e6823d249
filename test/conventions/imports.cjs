// The direction of imports, as rules that a machine checks. test/conventions/imports.test.ts sees each of them red once.
const PARTS = "^(server|protocol|agent-sim|test|prisma)/";
const SETTINGS = "^server/config\\.ts$";
const only = (name, from, allowed) => ({ name, severity: "error", from: { path: from }, to: { path: PARTS, pathNot: [from, ...allowed] } });

module.exports = {
  forbidden: [
    only("protocol-is-the-floor", "^protocol/", []),
    // The types of Prisma's models, which a handler sees in its transaction.
    only("core-speaks-protocol", "^server/core/", ["^protocol/", "^prisma/generated/"]),
    only("platform-knows-no-domain", "^server/platform/", ["^server/core/", "^protocol/(index|kit)", "^prisma/generated/", SETTINGS]),
    only("gateway-knows-no-feature", "^server/gateway/", ["^server/core/", "^protocol/", SETTINGS]),
    only("features-stand-on-core", "^server/features/[^/]+/", ["^server/features/", "^server/core/", "^server/platform/", "^protocol/", "^prisma/generated/"]),
    // features/index.ts puts the features together.
    only("features-know-no-gateway", "^server/features/[^/]+\\.ts$", [
      "^server/features/",
      "^server/core/",
      "^server/platform/",
      "^protocol/",
      SETTINGS,
      "^server/version\\.ts$",
    ]),
    {
      // A layer's factory reads the settings; everything else gets values.
      name: "settings-come-by-hand",
      severity: "error",
      from: { path: "^server/(core|platform|gateway|features)/", pathNot: "^server/(features/index|gateway/transports|platform/installation)\\.ts$" },
      to: { path: SETTINGS },
    },
    only("agent-sim-sees-only-protocol", "^agent-sim/", ["^protocol/"]),
    only("agent-knows-no-fleet", "^agent-sim/agent/", ["^protocol/"]),
    only("fleet-knows-no-command-line", "^agent-sim/fleet/", ["^agent-sim/agent/", "^protocol/"]),
    {
      // Its own tests look inside; everyone else uses it as a library.
      name: "agent-comes-by-its-index",
      severity: "error",
      from: { pathNot: "^(agent-sim/agent|test/agent-sim)/" },
      to: { path: "^agent-sim/agent/", pathNot: "^agent-sim/agent/index\\.ts$" },
    },
    {
      name: "agent-sim-depends-on-ws-and-zod",
      severity: "error",
      from: { path: "^agent-sim/" },
      to: { dependencyTypes: ["npm", "npm-dev"], pathNot: "node_modules/(@types/)?(ws|zod)/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "features-are-private",
      severity: "error",
      from: { path: "^server/features/([^/]+)/" },
      to: { path: "^server/features/", pathNot: ["^server/features/$1/", "^server/features/[^/]+/index\\.ts$", "^server/features/kit\\.ts$"] },
    },
    {
      name: "features-name-each-other-as-types",
      severity: "error",
      from: { path: "^server/features/([^/]+)/" },
      to: { path: "^server/features/[^/]+/index\\.ts$", pathNot: "^server/features/$1/", dependencyTypesNot: ["type-only"] },
    },
    {
      // A store may use the pure words of the database door (which error is a unique violation); everything that acts comes by hand.
      name: "platform-comes-by-hand",
      severity: "error",
      from: { path: "^server/features/", pathNot: "^server/features/index\\.ts$" },
      to: { path: "^server/platform/", pathNot: "^server/platform/db-errors\\.ts$", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "one-door-to-postgres",
      severity: "error",
      from: {
        path: "^(server|agent-sim)/",
        pathNot: "^server/(core/database\\.ts|platform/(prisma-clients|tenant-client)\\.ts|features/[^/]+/(store\\.ts|store/[^/]+\\.ts))$",
      },
      to: { path: "^prisma/generated/" },
    },
    // What the bench measures against speaks to the library itself.
    { name: "one-door-to-uws", severity: "error", from: { pathNot: "^(server/gateway/uws|test/bench/reference)/" }, to: { path: "uWebSockets\\.js|uws-pack" } },
    {
      name: "protocol-depends-on-zod",
      severity: "error",
      from: { path: "^protocol/", pathNot: "^protocol/client/(index|build)\\.ts$" },
      to: { dependencyTypes: ["npm", "npm-dev"], pathNot: "node_modules/zod/", dependencyTypesNot: ["type-only"] },
    },
    {
      // The package for portals consists of these files alone: the contract is there as types only, so no portal loads zod or the schemas.
      name: "client-carries-no-contract",
      severity: "error",
      from: { path: "^protocol/client/(index|contract|router)\\.ts$" },
      to: { pathNot: "node_modules/@trpc/client/", dependencyTypesNot: ["type-only"] },
    },
    {
      // The SDK takes a fifth of a second and 15 MB: only who wants traces pays for it.
      name: "traces-load-when-wanted",
      severity: "error",
      from: { path: "^(server|agent-sim)/" },
      to: { path: "^server/platform/tracing\\.ts$|@opentelemetry/", dynamic: false, dependencyTypesNot: ["type-only"] },
    },
    { name: "nothing-imports-tests", severity: "error", from: { pathNot: "^test/" }, to: { path: "^test/" } },
    // prisma/config.ts imports the package of that name, which the resolver takes for the file itself.
    { name: "no-cycles", severity: "error", from: { pathNot: "^prisma/config" }, to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } } },
  ],
  options: {
    tsPreCompilationDeps: "specify",
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|prisma/generated/internal)" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "types", "node", "default"] },
  },
};
