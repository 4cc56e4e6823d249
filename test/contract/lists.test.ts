// A list without pages answers everything at once, so each names what bounds it. A list that has no such bound needs pages.
import { describe, expect, test } from "vitest";
import { contract } from "../../protocol/index.ts";

const BOUNDS: Readonly<Record<string, string>> = {
  "account.notifications": "the kinds of notices",
  "meshRoutes.peers": "the routers of the routes that a plan allows",
  "meshRoutes.effective": "the routes that a plan allows",
  "tunnels.connections": "the newest 100 carriers of one tunnel",
  "account.tenants": "the first 100 memberships of one person",
  "account.updateNotifications": "the kinds of notices",
  "admin.listDevices": "the newest 100 devices with a machine's fingerprint",
  "admin.listFlags": "the flags that the gateway knows",
  "admin.listJobs": "the jobs of the gateway",
  "admin.listNodes": "a limit in the statement",
  "admin.listStuck": "a limit for each kind, and `truncated`",
  "attention.list": "50 lines, and 20 of each feature",
  "announcements.list": "100 announcements of the installation",
  "apps.listSnapshots": "50 of people and five automatic ones an app, with bounded metadata",
  "commands.getMany": "the ids in the request",
  "commands.poll": "`limit`",
  "commands.types": "the types that the gateway knows",
  "deployments.listApps": "the first 100 apps of one deployment",
  "devices.getMany": "the ids in the request",
  "devices.provision": "the count in the request",
  "general.changelog": "the entries of the change log",
  "general.deprecations": "the operations of the contract",
  "general.errors": "the codes of the contract",
  "general.rateLimit": "the buckets of one caller",
  "rollouts.failures": "100 codes, with five devices each",
  "rollouts.steps": "200 steps of one rollout",
  "roles.list": "the custom roles that a tenant may have",
  "roles.permissions": "the permissions of the contract",
  "security.listRules": "50 rules a tenant",
  "sessions.list": "the sessions that one person may have",
  "traces.operations": "1,000 names",
  "traces.services": "1,000 names",
  "webhooks.eventTypes": "the events of the contract",
};

interface Listed {
  readonly list?: string | undefined;
}
const listed = (matches: (list: string) => boolean): string[] =>
  Object.entries(contract).flatMap(([group, { operations }]) =>
    Object.entries<Listed>(operations).flatMap(([name, { list }]) => (list !== undefined && matches(list) ? [`${group}.${name}`] : [])),
  );
const plain = listed((list) => list === "plain");
const paged = listed((list) => list !== "plain");

/** What bounds the rows that a page reads, to filter and to count beyond those that it shows: their number, or `walk` for WALK_ROWS. */
const PAGED: Readonly<Record<string, string>> = {
  "admin.listTenants": "the tenants of the installation",
  "admin.listUsers": "the members of the installation",
  "alerts.list": "walk",
  "alerts.listChannels": "the channels that a tenant may have",
  "alerts.listRules": "the rules that a tenant may have",
  "alerts.listSilences": "the silences of people, kept for a while after their end",
  "alerts.listTargets": "the devices of a tenant, or what a rule watches",
  "apiKeys.list": "the keys that a plan allows",
  "apps.list": "the apps that a plan allows",
  "apps.templates": "the templates that the gateway knows",
  "audit.list": "walk",
  "audit.listInstallation": "walk",
  "bulkOperations.list": "the operations of people, kept for 400 days",
  "bulkOperations.listItems": "a page of one operation, by an index on number and status",
  "billing.invoices": "one invoice a month",
  "commands.list": "walk",
  "imports.list": "the imports of people, kept for 90 days",
  "imports.report": "the 5,000 records of a document",
  "impersonations.list": "what administrators have begun in the tenant within 400 days, after a recent sign-in each",
  "impersonations.listAll": "what administrators have begun within 400 days, after a recent sign-in each",
  "costs.listBudgets": "the budgets that a plan allows",
  "dataExports.list": "the exports that a plan allows a day, for 90 days",
  "commands.listAll": "walk",
  "commands.listPartial": "walk",
  "backups.list": "the retention of policies and the storage of the plan",
  "backups.listOfDevice": "as of the tenant",
  "backups.listOfTenant": "the retention of policies and the storage of the plan",
  "backups.listRestores": "people order restores one by one, and they go with their backups",
  "backupDestinations.list": "500 destinations of a tenant",
  "backupPolicies.list": "the policies that a plan allows",
  "backupPolicies.listRuns": "the runs of 90 days, as far apart as the plan asks for",
  "volumes.list": "1,000 volumes of a device",
  "deployments.list": "the apps that a plan allows",
  "deployments.listOfTenant": "the apps that a plan allows",
  "deployments.listRevisions": "the revisions of one deployment, made by people",
  "devices.list": "the devices that a plan allows",
  "devices.listHosts": "the devices that a plan allows",
  "devices.listPartial": "the devices that a plan allows",
  "meshRoutes.list": "the routes that a plan allows",
  "tunnels.list": "the tunnels that a plan allows",
  "tunnels.listOfDevice": "the tunnels that a plan allows",
  "domains.list": "the domains that a plan allows",
  "fleets.list": "the fleets of people",
  "fleets.listDevices": "the devices that a plan allows",
  "views.list": "the saved views that a tenant may have",
  "invites.list": "the invites of people",
  "pairing.listTokens": "the tokens of people",
  "pairing.requests": "the machines that ask within 15 minutes, ten a minute for each token of people",
  "roles.listMembers": "the members that a plan allows",
  "rollouts.devices": "walk",
  "rollouts.list": "the rollouts of people, kept for 400 days",
  "rollouts.listPolicies": "the policies that a plan allows",
  "security.installationAlerts": "walk",
  "security.installationEvents": "walk",
  "security.listAlerts": "walk",
  "security.listBlocked": "the blocks of people and rules, until they end",
  "security.listBlockedEverywhere": "the blocks of people and rules, until they end",
  "security.listEvents": "walk",
  "tenants.list": "the memberships of one person",
  "traces.list": "walk",
  "webhooks.list": "the webhooks that a plan allows",
  "webhooks.listDeliveries": "walk",
  "webhooks.listEvents": "walk",
};

describe("lists in pages", () => {
  test("name what bounds the rows that a page reads, and no other", () => {
    expect(paged.sort()).toEqual(Object.keys(PAGED).sort());
  });
});

describe("lists without pages", () => {
  test("name what bounds each of them, and no other", () => {
    expect(plain.sort()).toEqual(Object.keys(BOUNDS).sort());
  });
});

describe("the metadata of a snapshot", () => {
  const { input } = contract.apps.operations.createSnapshot;
  const accepts = (metadata: Readonly<Record<string, string>>): boolean => input.safeParse({ appId: `app_${"0".repeat(26)}`, metadata }).success;
  const named = (count: number, value: string) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`name${at}`, value]));

  test("have a bounded number of names", () => {
    expect([accepts(named(50, "x")), accepts(named(51, "x"))]).toEqual([true, false]);
  });
  test("have a bounded length in all", () => {
    expect([accepts(named(7, "x".repeat(1_000))), accepts(named(9, "x".repeat(1_000)))]).toEqual([true, false]);
  });
});
