// Every screen with its path and its search parameters. Screens load when somebody goes to them.
import { createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { readOneAppSearch } from "../screens/app/search.ts";
import { readAppSearch } from "../screens/apps/search.ts";
import { readBulkSearch } from "../screens/bulk/search.ts";
import { readCatalogueSearch } from "../screens/catalogue/search.ts";
import { readCommandSearch } from "../screens/commands/search.ts";
import { readDeploymentSearch } from "../screens/deployments/search.ts";
import { readOneDeviceSearch } from "../screens/device/search.ts";
import { readDeviceSearch } from "../screens/devices/search.ts";
import { readInviteSearch } from "../screens/invite/search.ts";
import { readKeySearch } from "../screens/keys/search.ts";
import { readMemberSearch } from "../screens/members/search.ts";
import { readNodeSearch } from "../screens/nodes/search.ts";
import { readOverviewSearch } from "../screens/overview/search.ts";
import { readPairSearch } from "../screens/pair/search.ts";
import { readRolloutSearch } from "../screens/rollouts/search.ts";
import { readSecuritySearch } from "../screens/security/search.ts";
import { readDeliverySearch } from "../screens/webhooks/search.ts";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/parts.tsx";
import { backupRoutes } from "./routes/backups.tsx";
import { networkRoutes } from "./routes/network.tsx";
import { root } from "./routes/root.tsx";
import { watchRoutes } from "./routes/watch.tsx";

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: readOverviewSearch,
  component: lazyRouteComponent(() => import("../screens/overview/overview.tsx"), "OverviewScreen"),
});
const devices = createRoute({
  getParentRoute: () => root,
  path: "/devices",
  validateSearch: readDeviceSearch,
  component: lazyRouteComponent(() => import("../screens/devices/devices.tsx"), "DevicesScreen"),
});
const device = createRoute({
  getParentRoute: () => root,
  path: "/devices/$deviceId",
  validateSearch: readOneDeviceSearch,
  component: lazyRouteComponent(() => import("../screens/device/device.tsx"), "DeviceScreen"),
});
const commands = createRoute({
  getParentRoute: () => root,
  path: "/commands",
  validateSearch: readCommandSearch,
  component: lazyRouteComponent(() => import("../screens/commands/commands.tsx"), "CommandsScreen"),
});
const bulkJobs = createRoute({
  getParentRoute: () => root,
  path: "/bulk",
  component: lazyRouteComponent(() => import("../screens/bulk/bulk-list.tsx"), "BulkListScreen"),
});
const bulkJob = createRoute({
  getParentRoute: () => root,
  path: "/bulk/$operationId",
  validateSearch: readBulkSearch,
  component: lazyRouteComponent(() => import("../screens/bulk/bulk.tsx"), "BulkScreen"),
});
const rollouts = createRoute({
  getParentRoute: () => root,
  path: "/rollouts",
  component: lazyRouteComponent(() => import("../screens/rollouts/rollouts.tsx"), "RolloutsScreen"),
});
const updatePolicies = createRoute({
  getParentRoute: () => root,
  path: "/rollouts/policies",
  component: lazyRouteComponent(() => import("../screens/rollouts/policies.tsx"), "PoliciesScreen"),
});
const updatePolicy = createRoute({
  getParentRoute: () => root,
  path: "/rollouts/policies/$updatePolicyId",
  component: lazyRouteComponent(() => import("../screens/rollouts/policy.tsx"), "PolicyScreen"),
});
const rollout = createRoute({
  getParentRoute: () => root,
  path: "/rollouts/$rolloutId",
  validateSearch: readRolloutSearch,
  component: lazyRouteComponent(() => import("../screens/rollouts/rollout.tsx"), "RolloutScreen"),
});
const pair = createRoute({
  getParentRoute: () => root,
  path: "/pair",
  validateSearch: readPairSearch,
  component: lazyRouteComponent(() => import("../screens/pair/pair.tsx"), "PairScreen"),
});
const members = createRoute({
  getParentRoute: () => root,
  path: "/members",
  validateSearch: readMemberSearch,
  component: lazyRouteComponent(() => import("../screens/members/members.tsx"), "MembersScreen"),
});
const invite = createRoute({
  getParentRoute: () => root,
  path: "/invite",
  validateSearch: readInviteSearch,
  component: lazyRouteComponent(() => import("../screens/invite/invite.tsx"), "InviteScreen"),
});
const exports = createRoute({
  getParentRoute: () => root,
  path: "/exports",
  component: lazyRouteComponent(() => import("../screens/exports/exports.tsx"), "ExportsScreen"),
});
const imports = createRoute({
  getParentRoute: () => root,
  path: "/imports",
  component: lazyRouteComponent(() => import("../screens/imports/imports.tsx"), "ImportsScreen"),
});
const oneImport = createRoute({
  getParentRoute: () => root,
  path: "/imports/$importId",
  component: lazyRouteComponent(() => import("../screens/imports/import.tsx"), "ImportScreen"),
});
const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  validateSearch: readKeySearch,
  component: lazyRouteComponent(() => import("../screens/keys/keys.tsx"), "KeysScreen"),
});
const billing = createRoute({
  getParentRoute: () => root,
  path: "/billing",
  component: lazyRouteComponent(() => import("../screens/billing/billing.tsx"), "BillingScreen"),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: lazyRouteComponent(() => import("../screens/settings/settings.tsx"), "SettingsScreen"),
});
const account = createRoute({
  getParentRoute: () => root,
  path: "/account",
  component: lazyRouteComponent(() => import("../screens/account/account.tsx"), "AccountScreen"),
});
const nodes = createRoute({
  getParentRoute: () => root,
  path: "/nodes",
  validateSearch: readNodeSearch,
  component: lazyRouteComponent(() => import("../screens/nodes/nodes.tsx"), "NodesScreen"),
});
const fleets = createRoute({
  getParentRoute: () => root,
  path: "/fleets",
  component: lazyRouteComponent(() => import("../screens/fleets/fleets.tsx"), "FleetsScreen"),
});
const fleet = createRoute({
  getParentRoute: () => root,
  path: "/fleets/$fleetId",
  component: lazyRouteComponent(() => import("../screens/fleets/fleet.tsx"), "FleetScreen"),
});
const catalogue = createRoute({
  getParentRoute: () => root,
  path: "/catalogue",
  validateSearch: readCatalogueSearch,
  component: lazyRouteComponent(() => import("../screens/catalogue/catalogue.tsx"), "CatalogueScreen"),
});
const template = createRoute({
  getParentRoute: () => root,
  path: "/catalogue/$templateId",
  component: lazyRouteComponent(() => import("../screens/catalogue/template.tsx"), "TemplateScreen"),
});
const apps = createRoute({
  getParentRoute: () => root,
  path: "/apps",
  validateSearch: readAppSearch,
  component: lazyRouteComponent(() => import("../screens/apps/apps.tsx"), "AppsScreen"),
});
const app = createRoute({
  getParentRoute: () => root,
  path: "/apps/$appId",
  validateSearch: readOneAppSearch,
  component: lazyRouteComponent(() => import("../screens/app/app.tsx"), "AppScreen"),
});
const deployments = createRoute({
  getParentRoute: () => root,
  path: "/deployments",
  validateSearch: readDeploymentSearch,
  component: lazyRouteComponent(() => import("../screens/deployments/deployments.tsx"), "DeploymentsScreen"),
});
const deployment = createRoute({
  getParentRoute: () => root,
  path: "/deployments/$deploymentId",
  validateSearch: readOneAppSearch,
  component: lazyRouteComponent(() => import("../screens/app/deployment.tsx"), "DeploymentScreen"),
});
/** Where messages of channels lead. */
const webhooks = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("../screens/webhooks/webhooks.tsx"), "WebhooksScreen"),
});
const webhook = createRoute({
  getParentRoute: () => root,
  path: "/webhooks/$webhookId",
  validateSearch: readDeliverySearch,
  component: lazyRouteComponent(() => import("../screens/webhooks/webhook.tsx"), "WebhookScreen"),
});
const security = createRoute({
  getParentRoute: () => root,
  path: "/security",
  validateSearch: readSecuritySearch,
  component: lazyRouteComponent(() => import("../screens/security/security.tsx"), "SecurityScreen"),
});
const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  component: lazyRouteComponent(() => import("../screens/sign-in/sign-in.tsx"), "SignIn"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    devices,
    device,
    commands,
    bulkJobs,
    bulkJob,
    rollouts,
    rollout,
    updatePolicies,
    updatePolicy,
    pair,
    members,
    invite,
    keys,
    exports,
    imports,
    oneImport,
    billing,
    settings,
    account,
    nodes,
    fleets,
    fleet,
    catalogue,
    template,
    apps,
    app,
    deployments,
    deployment,
    ...backupRoutes,
    ...networkRoutes,
    ...watchRoutes,
    webhooks,
    webhook,
    security,
    signIn,
  ]),
  defaultPreload: "intent",
  defaultErrorComponent: ({ error, reset }) => (
    <Page title="Something went wrong">
      <Failure error={error} retry={reset} />
    </Page>
  ),
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
