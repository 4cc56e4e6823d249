// The access matrix, derived from the contract: every operation × caller × whose id, with the answer that the declaration promises.
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { ERRORS, type ErrorCode, type Operation, permits, ROLES, type Role } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { type Case, NEEDS_PROVIDER, restored, SESSION_ONLY, type Stock, sample, send, toRequest } from "../../contract/samples.ts";
import { anonymous, asBearer, asKey, type Caller, OPERATOR } from "../../kit/gateway/world.ts";

export interface Standing {
  readonly name: string;
  readonly as: Caller;
  /** Of a person. */
  readonly userId?: string;
  /** In the tenant of the stock; null for callers who have none there. */
  readonly role: Role | null;
  readonly runsInstallation: boolean;
}

const WHOSE = ["own", "foreign", "unknown"] as const;
type Whose = (typeof WHOSE)[number];

/** "allowed", or the codes of the refusals that the declaration permits. */
type Promised = "allowed" | readonly string[];

export interface Cell {
  readonly each: Case;
  readonly caller: Standing;
  readonly whose: Whose;
  readonly field: string | null;
  readonly promised: Promised;
  /** Whether an allowed call stops at an input with one key too many, which the gateway reads only after it has let the caller in. */
  readonly isProbe: boolean;
}

const keyOf = async ({ world, owner, tenant }: Stock, role: Role): Promise<Standing> => {
  const { body } = await world.call(owner, "POST", "/v1/api-keys", { body: { name: role, role } });
  return { name: `apiKey ${role}`, as: asKey(body.data.apiKey, tenant.tenantId), role, runsInstallation: false };
};

/** Everybody who may call: without a credential, each role as a person and as a key, the device's agent, a stranger and the administrator. */
export const openCallers = async (ours: Stock, theirs: Stock): Promise<readonly Standing[]> => {
  const stranger = asBearer(await theirs.tenant.token("owner"));
  // They name the tenant, or a call would take place in the only one that they have.
  const named = (as: Caller): Caller => ({ ...as, headers: (body) => ({ ...as.headers(body), "x-svc-tenant-id": ours.tenant.tenantId }) });
  const people = ROLES.map(async (role) => ({
    ...{ name: `user ${role}`, as: await ours.tenant.user(role), userId: ours.tenant.userId(role) },
    ...{ role, runsInstallation: false },
  }));
  return [
    { name: "nobody", as: anonymous, role: null, runsInstallation: false },
    ...(await Promise.all(people)),
    ...(await Promise.all(ROLES.map((role) => keyOf(ours, role)))),
    { name: "agent", as: ours.device.as, role: null, runsInstallation: false },
    { name: "stranger", as: named(stranger), userId: theirs.tenant.ownerId, role: null, runsInstallation: false },
    { name: "administrator", as: named(ours.operator), userId: OPERATOR, role: null, runsInstallation: true },
  ];
};

const IDS = /^(?:deviceId|commandId|tenantId|tenant_id|keyId|tokenId|auditId|pairingCode|deploymentId|roleId|appId|snapshotId|memberId|inviteId|sessionId)$/;
const idFields = ({ input }: Operation): readonly string[] =>
  Object.keys((z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as { properties?: object }).properties ?? {}).filter((name) => IDS.test(name));

const byRole = ({ permission }: Operation, role: Role): Promised =>
  permission === "self" || permission === "public" || permission === "platform" || permits(role, permission) ? "allowed" : ["FORBIDDEN"];

const forOwn = (op: Operation, { as, role, runsInstallation }: Standing): Promised => {
  if (op.auth.includes("public")) return "allowed";
  if (as.kind === "none") return ["UNAUTHORIZED"];
  if (!op.auth.includes(as.kind)) return ["FORBIDDEN"];
  if (op.permission === "platform") return runsInstallation ? "allowed" : ["ADMIN_REQUIRED"];
  if (as.kind === "agent") return "allowed";
  if (role !== null) return byRole(op, role);
  if (op.tenancy === "tenant") return ["FORBIDDEN", "UNAUTHORIZED"];
  // Of a tenant that the caller is no member of.
  return idFields(op).includes("tenantId") ? ["NOT_FOUND"] : "allowed";
};

const promise = ({ id, op }: Case, caller: Standing, whose: Whose): Promised => {
  const missing = NEEDS_PROVIDER.get(id);
  if (missing !== undefined && op.auth.includes("public")) return [missing];
  if (SESSION_ONLY.has(id) && caller.as.kind === "user") return ["FORBIDDEN"];
  const own = forOwn(op, caller);
  if (own === "allowed" && whose === "own" && missing !== undefined) return [missing];
  if (own !== "allowed" || whose === "own") return own;
  // An agent's own device is in its credential; a person or key learns nothing about others' ids.
  return caller.as.kind === "agent" ? ["FORBIDDEN", "NOT_FOUND"] : ["NOT_FOUND"];
};

const fieldsOf = async (each: Case, stock: Stock): Promise<readonly (string | null)[]> => {
  if (each.op.auth.includes("public") || each.op.tenancy !== "tenant") return [null];
  const given = await sample(each, stock);
  // A role is often a built-in one, which every tenant knows by the same key.
  return [null, ...idFields(each.op).filter((name) => name === "pairingCode" || /^[a-z]{2,4}_/.test(String(given[name])))];
};

const isStrict = ({ input }: Operation): boolean =>
  (z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as { additionalProperties?: unknown }).additionalProperties === false;
/** Of the roles that may make a call, the lowest does so as a person and with a key, and the highest as a person. The others only ask. */
const asksOnly = ({ op }: Case, { as, role }: Standing): boolean => {
  if (op.kind === "subscription" || role === null || !isStrict(op)) return false;
  const [lowest, ...higher] = ROLES.filter((each) => byRole(op, each) === "allowed");
  return role !== lowest && !(role === higher.at(-1) && as.kind === "user");
};

/** Callers with others' ids. Who is refused with own ids, too, is refused before any id is read, so one of a kind and a refusal stands for all. */
const withOthersIds = ({ op }: Case, callers: readonly Standing[]): readonly Standing[] => {
  const kindOf = (caller: Standing): string => `${caller.as.kind} ${String(forOwn(op, caller))}`;
  const kinds = callers.map(kindOf);
  return callers.filter((caller, n) => forOwn(op, caller) === "allowed" || kinds.indexOf(kindOf(caller)) === n);
};

export const cellsOf = async (each: Case, callers: readonly Standing[], theirs: Stock): Promise<readonly Cell[]> =>
  (await fieldsOf(each, theirs)).flatMap((field) =>
    (field === null ? callers : withOthersIds(each, callers)).flatMap((caller) =>
      (field === null ? (["own"] as const) : (["foreign", "unknown"] as const)).map((whose) => {
        const promised = promise(each, caller, whose);
        return { each, caller, whose, field, promised, isProbe: promised === "allowed" && asksOnly(each, caller) };
      }),
    ),
  );

const unknownLike = (field: string, value: unknown): string => (field === "pairingCode" ? "BBBB-BBBB" : `${String(value).slice(0, 4)}${newId("x").slice(2)}`);

/** Each allowed call of a change, or of a query that uses its token up, needs a fresh input; a refused one leaves its input as it was. */
const inputOf = async ({ each, caller, whose, field, promised, isProbe }: Cell, ours: Stock, theirs: Stock, shared: Map<string, object>): Promise<object> => {
  const { id, op } = each;
  if (promised === "allowed" && !isProbe && (op.kind === "mutation" || id === "sessions.login" || id === "dataExports.downloadByLink")) {
    const input = await sample(each, ours, caller.userId ?? ours.tenant.ownerId);
    // An agent may name its own device only, also where the sample takes a spare one.
    return caller.as.kind === "agent" && "deviceId" in input ? { ...input, deviceId: ours.device.deviceId } : input;
  }
  const name = `${id} ${field === null ? "own" : "foreign"}`;
  const input = shared.get(name) ?? (await sample(each, field === null ? ours : theirs));
  shared.set(name, input);
  if (isProbe) return { ...input, oneTooMany: 1 };
  return field === null || whose === "foreign" ? input : { ...input, [field]: unknownLike(field, (input as Record<string, unknown>)[field]) };
};

interface Refusal {
  readonly status: number;
  readonly code: ErrorCode;
  readonly details?: unknown;
}
/** The refusal; null for success. Over tRPC, where each operation has a path of its own, unless only REST has it. */
const answerTo = async (stock: Stock, { id, op }: Case, as: Caller, input: object): Promise<Refusal | null> => {
  const { world } = stock;
  if (op.plain?.pieces === true) {
    const { status, body } = await send(stock, as, "/v1", toRequest(op, { ...input }));
    return body?.code === undefined ? null : { status, code: body.code, details: body.details };
  }
  const query = `/trpc/${id}?input=${encodeURIComponent(JSON.stringify(input))}`;
  if (op.kind === "subscription") {
    const stop = new AbortController();
    const { body } = await fetch(`${world.url}${query}`, { headers: { ...as.headers(""), accept: "text/event-stream" }, signal: stop.signal });
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    let first = "";
    while (!/stream\.position|serialized-error|"notice"/.test(first)) first += (await reader?.read())?.value ?? "";
    stop.abort();
    const [, code] = /"app":{"code":"([A-Z_]+)"/.exec(first) ?? [];
    return code === undefined ? null : { status: ERRORS[code as ErrorCode].status, code: code as ErrorCode };
  }
  const { status, body } = op.kind === "query" ? await world.call(as, "GET", query) : await world.call(as, "POST", `/trpc/${id}`, { body: input });
  return body.error === undefined ? null : { status, code: body.error.data.app.code, details: body.error.data.app.details };
};

const keeps = (promised: Promised, code: string | null): boolean =>
  promised === "allowed" ? code === null : promised.some((each) => code === each || (each === "NOT_FOUND" && code?.endsWith("_NOT_FOUND") === true));

/** A person who is refused for their role learns which permission is missing. Of a stream only the code is read. */
const explains = ({ each: { id, op }, caller: { as, role }, whose, promised }: Cell, { code, details }: Refusal): boolean =>
  whose !== "own" ||
  as.kind !== "user" ||
  role === null ||
  code !== "FORBIDDEN" ||
  promised === "allowed" ||
  SESSION_ONLY.has(id) ||
  !op.auth.includes("user") ||
  op.kind === "subscription"
    ? true
    : isDeepStrictEqual(details, { requiredPermission: op.permission, role });

/** What the cells answer against their promise, a line each. */
export const violations = async (cells: readonly Cell[], ours: Stock, theirs: Stock): Promise<readonly string[]> => {
  const shared = new Map<string, object>();
  const found: string[] = [];
  for (const cell of cells) {
    const { each, caller, whose, field, promised, isProbe } = cell;
    const refusal = await answerTo(ours, each, caller.as, await inputOf(cell, ours, theirs, shared));
    const code = refusal?.code ?? null;
    if (isProbe) {
      if (code !== "VALIDATION_FAILED") found.push(`${each.id} by ${caller.name} with a key too many: ${code ?? "success"} instead of VALIDATION_FAILED`);
      continue;
    }
    if (each.op.kind === "mutation" && code === null) await restored(ours);
    const cellName = `${each.id} by ${caller.name} with ${whose} ${field ?? "ids"}`;
    if (!keeps(promised, code)) found.push(`${cellName}: ${code ?? "success"} instead of ${String(promised)}`);
    if (refusal !== null && refusal.status !== ERRORS[refusal.code].status) found.push(`${cellName}: status ${refusal.status} for ${refusal.code}`);
    if (refusal !== null && !explains(cell, refusal)) found.push(`${cellName}: ${JSON.stringify(refusal.details)} does not name the missing permission`);
  }
  return found;
};
