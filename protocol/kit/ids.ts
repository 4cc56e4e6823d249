// Typed ids. The prefix says what an id names; the rest is opaque and sorts by creation time.
import { z } from "zod";

export type Id<P extends string> = `${P}_${string}`;

/** An id that the server created, in its exact form. For outputs. */
export const id = <const P extends string>(prefix: P) =>
  z.templateLiteral([prefix, "_", z.string().regex(/[0-9A-Za-z]{20,32}/)]).meta({ examples: [`${prefix}_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R`] });

/** What each prefix names. */
export const ID_NAMES: ReadonlyMap<string, string> = new Map([
  ["vw", "saved view"],
  ["agt", "agent"],
  ["alr", "alert"],
  ["ann", "announcement"],
  ["app", "app"],
  ["arl", "alert rule"],
  ["aud", "audit record"],
  ["bak", "backup"],
  ["bkd", "backup destination"],
  ["bke", "blocked entity"],
  ["blk", "bulk operation"],
  ["bpl", "backup policy"],
  ["bpr", "run of a backup policy"],
  ["bud", "budget"],
  ["chn", "alert channel"],
  ["cmd", "command"],
  ["dep", "deployment"],
  ["dev", "device"],
  ["dom", "custom domain"],
  ["ent", "enrollment token"],
  ["evt", "event"],
  ["exp", "data export"],
  ["flt", "fleet"],
  ["imp", "impersonation"],
  ["imt", "import"],
  ["inv", "invite"],
  ["key", "API key"],
  ["mem", "member"],
  ["mrt", "mesh route"],
  ["par", "pairing request"],
  ["rlt", "rollout"],
  ["rol", "role"],
  ["rst", "restore"],
  ["sal", "security alert"],
  ["ses", "session"],
  ["sev", "security event"],
  ["srl", "security rule"],
  ["sil", "silence"],
  ["snp", "snapshot"],
  ["ten", "tenant"],
  ["upl", "update policy"],
  ["tun", "tunnel"],
  ["wh", "webhook"],
  ["whd", "delivery"],
]);

/**
 * An id from a caller: any short text. An id of impossible form gets the same 404 as an unknown one, never a 400, so that the two cannot
 * be told apart.
 */
export const ref = <const P extends string>(prefix: P) =>
  z
    .string()
    .min(1)
    .max(128)
    .meta({
      description: `Id of the ${ID_NAMES.get(prefix) ?? "thing"}.`,
      examples: [`${prefix}_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R`],
    }) as unknown as z.ZodType<Id<P>, string>;

export const DeviceId = id("dev");
export const TenantId = id("ten");
export const DeploymentId = id("dep");
export const AgentId = id("agt");
export const AppId = id("app");
export const CommandId = id("cmd");
export const KeyId = id("key");
export const DomainId = id("dom");
export const FleetId = id("flt");
export const MemberId = id("mem");
export const MeshRouteId = id("mrt");
export const RoleId = id("rol");
export const EnrollmentTokenId = id("ent");
export const PairingRequestId = id("par");
export const EventId = id("evt");
export const SessionId = id("ses");
export const AlertId = id("alr");
export const AlertRuleId = id("arl");
export const AlertChannelId = id("chn");
export const SilenceId = id("sil");
export const WebhookId = id("wh");
export const BackupId = id("bak");
export const RestoreId = id("rst");
export const BackupDestinationId = id("bkd");
export const BackupPolicyId = id("bpl");
export const BackupRunId = id("bpr");
export const BudgetId = id("bud");

export type DeviceId = Id<"dev">;
export type TenantId = Id<"ten">;
export type AppId = Id<"app">;
export type DeploymentId = Id<"dep">;
export type AgentId = Id<"agt">;
export type CommandId = Id<"cmd">;
export type DomainId = Id<"dom">;
export type FleetId = Id<"flt">;
export type MeshRouteId = Id<"mrt">;
export type KeyId = Id<"key">;
export type MemberId = Id<"mem">;
export type RoleId = Id<"rol">;
export type SessionId = Id<"ses">;
export type WebhookId = Id<"wh">;
export type BackupId = Id<"bak">;
export type RestoreId = Id<"rst">;
export type BackupDestinationId = Id<"bkd">;
export type BackupPolicyId = Id<"bpl">;
export type BackupRunId = Id<"bpr">;
export type BudgetId = Id<"bud">;
