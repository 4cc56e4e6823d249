// Rules for the direction of imports. test/conventions/imports.test.ts proves that each of them can fail.
const PARTS = "^(server|protocol|agent-sim|portal|test|prisma)/";
/** Files of the protocol whose values a browser may load; all others bring zod along. */
const LIGHT = "^protocol/(client/index|kit/(app-fit|command-status|words|identifier-words))\\.ts$";
const SETTINGS = "^server/config(-table)?\\.ts$";
const only = (name, from, allowed) => ({ name, severity: "error", from: { path: from }, to: { path: PARTS, pathNot: [from, ...allowed] } });

module.exports = {
  forbidden: [
    only("protocol-imports-nothing-of-ours", "^protocol/", []),
    // A handler's transaction has the types of Prisma's models.
    only("core-imports-only-protocol", "^server/core/", ["^protocol/", "^prisma/generated/"]),
    only("platform-imports-no-feature", "^server/platform/", ["^server/core/", "^protocol/(index|kit)", "^prisma/generated/", SETTINGS]),
    only("gateway-imports-only-core-and-protocol", "^server/gateway/", ["^server/core/", "^protocol/", SETTINGS]),
    only("edge-imports-core-and-gateway", "^server/edge/", ["^server/core/", "^server/gateway/", "^protocol/"]),
    only("features-import-no-gateway", "^server/features/", ["^server/features/", "^server/core/", "^server/platform/", "^protocol/", "^prisma/generated/"]),
    // It connects the features.
    only("wiring-imports-no-gateway", "^server/wiring/", [
      "^server/features/",
      "^server/core/",
      "^server/platform/",
      "^protocol/",
      SETTINGS,
      "^server/version\\.ts$",
    ]),
    {
      // Only a layer's factory and its settings read the configuration and pass on values.
      name: "settings-are-injected",
      severity: "error",
      from: {
        path: "^server/(core|platform|gateway|features|wiring)/",
        pathNot: "^server/(wiring/(deps|settings)|gateway/transports|platform/installation)\\.ts$",
      },
      to: { path: SETTINGS },
    },
    only("agent-sim-imports-only-protocol", "^agent-sim/", ["^protocol/"]),
    only("agent-imports-no-fleet", "^agent-sim/agent/", ["^protocol/"]),
    only("hosts-import-no-fleet", "^agent-sim/host/", ["^agent-sim/agent/", "^agent-sim/children/", "^protocol/"]),
    only("children-know-no-host", "^agent-sim/children/", ["^agent-sim/agent/", "^protocol/"]),
    only("fleet-imports-no-command-line", "^agent-sim/fleet/", ["^agent-sim/agent/", "^agent-sim/host/", "^protocol/"]),
    {
      // Only its own tests see its files; everyone else uses it as a library.
      name: "agent-is-imported-through-its-index",
      severity: "error",
      from: { pathNot: "^(agent-sim/agent|test/agent-sim)/" },
      to: { path: "^agent-sim/agent/", pathNot: "^agent-sim/agent/index\\.ts$" },
    },
    {
      // One module starts foreign programs, within bounds of time and memory, and reads their output. The shim runs without our other files and bounds its lines itself.
      // Workers are the gateway itself and bound their own shutdown.
      name: "one-module-starts-programs",
      severity: "error",
      from: {
        path: "^(server|agent-sim|protocol)/",
        // The command line asks a person for the key; the kit mounts a small disk for a case.
        pathNot:
          "^(protocol/kit/programs/program\\.ts|protocol/client/cli/main\\.ts|protocol/agent-kit/cases/core-journal\\.ts|agent-sim/host/processes/shim\\.mjs|agent-sim/package/main\\.mjs|server/workers\\.ts|server/build\\.mjs)$",
      },
      to: { path: "^(node:)?(child_process|readline|readline/promises|cluster)$" },
    },
    {
      name: "agent-sim-needs-only-ws-and-zod",
      severity: "error",
      // The configuration file of an installed agent is YAML.
      from: { path: "^agent-sim/", pathNot: "^agent-sim/cli/settings\\.ts$" },
      to: { dependencyTypes: ["npm", "npm-dev"], pathNot: "node_modules/(@types/)?(ws|zod)/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "features-import-only-each-others-index",
      severity: "error",
      from: { path: "^server/features/([^/]+)/" },
      to: { path: "^server/features/", pathNot: ["^server/features/$1/", "^server/features/[^/]+/index\\.ts$", "^server/features/kit\\.ts$"] },
    },
    {
      name: "features-import-each-other-as-types",
      severity: "error",
      from: { path: "^server/features/([^/]+)/" },
      to: { path: "^server/features/[^/]+/index\\.ts$", pathNot: "^server/features/$1/", dependencyTypesNot: ["type-only"] },
    },
    {
      // A store may import the pure functions that classify database errors. A feature gets everything with an effect as a parameter.
      name: "platform-is-injected",
      severity: "error",
      from: { path: "^server/features/[^/]+/" },
      to: { path: "^server/platform/", pathNot: "^server/platform/database/db-errors\\.ts$", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "only-stores-touch-prisma",
      severity: "error",
      from: {
        path: "^(server|agent-sim)/",
        pathNot: "^server/(core/database\\.ts|platform/database/(prisma-clients|tenant-client)\\.ts|features/[^/]+/(store\\.ts|store/[^/]+\\.ts))$",
      },
      to: { path: "^prisma/generated/" },
    },
    // The benchmarks compare the gateway with the bare library.
    {
      name: "only-gateway-uws-touches-uws",
      severity: "error",
      from: { pathNot: "^(server/gateway/uws|test/bench/reference)/" },
      to: { path: "uWebSockets\\.js|uws-pack" },
    },
    {
      // The list for Compose projects reads their text: gateway and agent must read it alike. The kit for agents plays a gateway on ws.
      name: "protocol-needs-only-zod",
      severity: "error",
      from: {
        path: "^protocol/",
        pathNot: "^protocol/(client/(index|build|cli/[^/]+)|kit/compose-project|agent-kit/(build|gateway/kit-(gateway|session)))\\.ts$",
      },
      to: { dependencyTypes: ["npm", "npm-dev"], pathNot: "node_modules/zod/", dependencyTypesNot: ["type-only"] },
    },
    // It judges agents by the documents; nobody builds on it.
    { name: "only-tests-import-the-agent-kit", severity: "error", from: { pathNot: "^(protocol/agent-kit|test)/" }, to: { path: "^protocol/agent-kit/" } },
    {
      // The client package holds only these files. They import the contract as types, so no portal loads zod or the schemas.
      name: "client-bundles-no-contract",
      severity: "error",
      from: { path: "^protocol/client/(index|contract|router)\\.ts$" },
      to: { pathNot: "node_modules/@trpc/client/", dependencyTypesNot: ["type-only"] },
    },
    {
      // The SDK costs 0.2 s and 15 MB; an installation without traces does not pay for it.
      name: "tracing-loads-on-demand",
      severity: "error",
      from: { path: "^(server|agent-sim)/" },
      to: { path: "^server/platform/telemetry/tracing\\.ts$|@opentelemetry/", dynamic: false, dependencyTypesNot: ["type-only"] },
    },
    only("portal-imports-only-protocol", "^portal/", ["^protocol/"]),
    { name: "only-tests-import-portal", severity: "error", from: { pathNot: "^(portal|test)/" }, to: { path: "^portal/" } },
    {
      name: "portal-imports-the-contract-as-types",
      severity: "error",
      // The plugin runs in the build: pages load nothing of what it imports.
      from: { path: "^portal/", pathNot: "^portal/icons-plugin\\.ts$" },
      to: { path: "^protocol/", pathNot: LIGHT, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "what-portals-load-is-light",
      severity: "error",
      from: { path: LIGHT },
      to: { pathNot: [LIGHT, "node_modules/@trpc/client/"], dependencyTypesNot: ["type-only"] },
    },
    // Its parts know no operation, so each screen decides what it shows with them.
    { name: "portal-ui-imports-only-ui", severity: "error", from: { path: "^portal/src/ui/" }, to: { path: "^portal/src/(api|app|parts|screens)/" } },
    { name: "portal-parts-import-no-screen", severity: "error", from: { path: "^portal/src/parts/" }, to: { path: "^portal/src/(app|screens)/" } },
    {
      // A screen loads when somebody opens it.
      name: "screens-do-not-import-each-other",
      severity: "error",
      from: { path: "^portal/src/screens/([^/]+)/" },
      to: { path: "^portal/src/screens/", pathNot: "^portal/src/screens/$1/" },
    },
    { name: "nothing-imports-tests", severity: "error", from: { pathNot: "^test/" }, to: { path: "^test/" } },
    // prisma/config.ts imports `prisma/config`, which the resolver takes for the file itself.
    { name: "no-cycles", severity: "error", from: { pathNot: "^prisma/config" }, to: { circular: true } },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|prisma/generated/internal)" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "types", "node", "default"] },
  },
};
