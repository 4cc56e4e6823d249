// The public name of each record in OpenAPI and in generated clients. Schemas without a name here are inlined.
import { z } from "zod";
import { ApiKey } from "./groups/access/api-keys.ts";
import { Plan, Tenant } from "./groups/access/tenants.ts";
import { Connectivity, Device, DeviceSecrets, DeviceStatus } from "./groups/devices.ts";
import { DeepHealthResponse, Dependency, FullHealthResponse, HealthCheckResult, HealthResponse, LivenessResponse, ReadinessResponse } from "./groups/health.ts";
import { GatewayNode } from "./groups/installation/admin.ts";
import { LiveEvent, StreamGap } from "./groups/live.ts";
import { contract, type Group } from "./index.ts";
import { Pagination } from "./kit/page.ts";
import { namedOf } from "./records/actor.ts";
import { BlockedBy, Command, CommandStatus, CommandSummary, CommandTypeRecord, DeliveredCommand, PolledCommand, TimelineEntry } from "./records/command.ts";
import { AckResult } from "./records/command-ack.ts";
import { EnrollmentProgress, EnrollmentStep, InstallCommand, StepStatus } from "./records/devices/enrollment.ts";
import { EnrollmentToken, PairingActivateResponse, PairingRequest, WaitingMachine } from "./records/devices/pairing.ts";

const { account, admin, agent, alerts, apiKeys, bulkOperations, commands, devices, general, health, invites, pairing, roles, tenants, webhooks } = contract;

const RECORDS: Readonly<Record<string, z.ZodType>> = {
  AcceptedInvite: invites.operations.accept.output,
  AccountExport: account.operations.export.output,
  AckResult,
  AgentConfig: agent.operations.config.output,
  AgentInfo: agent.operations.me.output,
  ApiKey,
  ApiKeyWithCreator: apiKeys.operations.get.output,
  AuthConfig: general.operations.authConfig.output,
  BlockedBy,
  BulkPart: bulkOperations.operations.uploadItems.output,
  Caller: general.operations.me.output,
  Change: general.operations.changelog.output.shape.items.element,
  Command,
  CommandCounts: commands.operations.summary.output,
  CommandStatus,
  CreatedAlertChannel: alerts.operations.createChannel.output,
  AlertChannelTest: alerts.operations.testChannel.output,
  CommandSummary,
  CommandTypeRecord,
  CommandTimeline: commands.operations.timeline.output,
  Connectivity,
  CreatedApiKey: apiKeys.operations.create.output,
  CreatedInvite: invites.operations.create.output,
  CreatedEnrollmentToken: pairing.operations.createToken.output,
  CreatedWebhook: webhooks.operations.create.output,
  WebhookSecret: webhooks.operations.rotateSecret.output,
  WebhookReplay: webhooks.operations.replay.output,
  CreatedTenant: tenants.operations.create.output,
  DeepHealthResponse,
  Delivery: DeliveredCommand.shape.delivery,
  Dependency,
  Deprecation: general.operations.deprecations.output.shape.items.element,
  Device,
  DeviceCounts: devices.operations.summary.output,
  DeviceSecrets,
  DeviceStatus,
  Disconnection: devices.operations.disconnect.output,
  EnrollmentProgress,
  EnrollmentStep,
  EnrollmentToken,
  ErrorDescription: general.operations.error.output,
  FullHealthResponse,
  GatewayNode,
  HealthCheckResult,
  HealthResponse,
  HealthStatus: HealthResponse.shape.status,
  HeartbeatReceipt: devices.operations.heartbeat.output,
  InstallCommand,
  InviteForGuest: invites.operations.lookup.output,
  InviteWithLink: invites.operations.resend.output,
  InventoryReceipt: agent.operations.reportInventory.output,
  LiveEvent,
  LivenessResponse,
  OwnershipTransfer: roles.operations.transferOwnership.output,
  Pagination,
  PairingApproval: pairing.operations.approve.output,
  PairingActivateResponse,
  PairingInitiateResponse: pairing.operations.initiate.output,
  PairingCollectResponse: pairing.operations.collect.output,
  PairingRequest,
  PairingStatusResponse: pairing.operations.status.output,
  Plan,
  PolledCommand,
  PrepareActivationResponse: pairing.operations.prepareActivation.output,
  ProvisionedDevice: devices.operations.provision.output.shape.items.element,
  PurgedCommands: commands.operations.purge.output,
  RateLimit: general.operations.rateLimit.output.shape.items.element,
  ReadinessResponse,
  Repair: devices.operations.openRepair.output,
  ForcedDisconnection: admin.operations.disconnectDevice.output,
  OrderedJobRun: admin.operations.runJob.output,
  SecretRotation: devices.operations.rotateSecret.output,
  ServiceInfo: general.operations.info.output,
  StatusPage: health.operations.status.output,
  StepStatus,
  StreamGap,
  StreamTicket: general.operations.streamTicket.output,
  Tenant,
  TimelineEntry,
  WaitingMachine,
  ...Object.assign({}, ...Object.values<Group>(contract).map(({ records }) => records)),
};

/** Beside a record, the one whose reads name people. */
export const SCHEMAS: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  Object.entries(RECORDS).flatMap(([name, record]) => {
    const withActors = namedOf(record);
    return withActors === undefined
      ? [[name, record]]
      : [
          [name, record],
          [`${name}WithActors`, withActors],
        ];
  }),
);

const NAMES: ReadonlyMap<unknown, string> = new Map(Object.entries(SCHEMAS).map(([name, schema]) => [schema, name]));

/** Metadata for `z.toJSONSchema`: a schema's own, and its public name. */
export const metadata = z.registry<Record<string, unknown>>();
metadata.get = (schema) => {
  const id = NAMES.get(schema);
  const said = z.globalRegistry.get(schema) as Record<string, unknown> | undefined;
  return id === undefined ? said : { ...said, id };
};
