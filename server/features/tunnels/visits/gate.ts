// Decides who may visit a tunnel: its state, the visitor's address, then the access that it asks for.
import { createHash } from "node:crypto";
import type { Clock } from "../../../core/clock.ts";
import { networkTest, parseAddress } from "../../../core/people/addresses.ts";
import { readCookie, writeCookie } from "../../../core/people/session-cookies.ts";
import type { EdgeError, EdgeRequest } from "../../../core/ports/edge.ts";
import type { CallInProcess } from "../../../core/ports/in-process.ts";
import type { Blocks } from "../../../core/ports/security.ts";
import { createBoundedCache } from "../../../core/structures/bounded-cache.ts";
import type { TunnelRow } from "../store.ts";
import { BLOCKED, EXPIRED, FORBIDDEN, NEEDS_KEY, NEEDS_TOKEN, NOT_ALLOWED, STOPPED } from "./failures.ts";
import { KEY_HEADER, TOKEN_HEADER } from "./headers.ts";
import { COOKIE_SECONDS, type Passes, type PassHolder } from "./passes.ts";

export type Entrance =
  | { readonly kind: "in" }
  | { readonly kind: "refused"; readonly error: EdgeError }
  /** A browser goes there, with this cookie. */
  | { readonly kind: "sent"; readonly location: string; readonly cookie?: string };

export interface VisitGateDeps {
  readonly clock: Clock;
  readonly passes: Passes;
  readonly call: CallInProcess;
  readonly publicUrl: () => string;
  readonly blocks: () => Pick<Blocks, "any" | "refuses" | "refusesAddress">;
  /** False: the code was used before, on whichever node. */
  readonly useCode: (code: string) => Promise<boolean>;
  /** Whether this member may use the tunnel now. */
  readonly isMember: (tunnel: TunnelRow, userId: string) => Promise<boolean>;
}

/** How long an answer about a person or a key holds. */
const HOLDS_MS = 5_000;
const MAX_ANSWERS = 10_000;
/** Where the code of a sign-in comes back to. */
const ENTER = "/.mooring/enter";
const TOKEN_QUERY = "mooring_token";

const IN: Entrance = { kind: "in" };
const refused = (error: EdgeError): Entrance => ({ kind: "refused", error });

/** A page of the tunnel can read no cookie of ours, and over TLS no other host can plant one. */
export const cookieName = (secure: boolean): string => `${secure ? "__Host-" : ""}mooring_tunnel`;
export const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

const wantsPage = ({ method, message }: EdgeRequest): boolean =>
  (method === "GET" || method === "HEAD") && (message.headers.accept?.includes("text/html") ?? false);
const one = (value: string | readonly string[] | undefined): string | undefined => (typeof value === "string" ? value : value?.[0]);
/** Never another host: a path that begins with two slashes would be one. */
const localPath = (path: string): string => `/${path.replace(/^[/\\]+/, "")}`;

/** The block list speaks of addresses and of members; it is in memory, so every request asks it. */
const isBlocked = (list: ReturnType<VisitGateDeps["blocks"]>, { tenantId }: TunnelRow, ip: string, userId?: string): boolean =>
  list.any && (list.refusesAddress(ip) || list.refuses({ tenantId, ip, principal: { kind: "user", ...(userId === undefined ? {} : { userId }) } }));
const isExpected = ({ allow }: TunnelRow, ip: string): boolean => {
  if (allow.length === 0) return true;
  const address = parseAddress(ip);
  return address !== null && allow.some((network) => (network.includes("/") ? networkTest(network)(address) : network === address.toString()));
};

/** Whether anybody from this address may come now; null: yes. */
export const createAddressGate =
  ({ clock, blocks }: Pick<VisitGateDeps, "clock" | "blocks">) =>
  (tunnel: TunnelRow, ip: string): EdgeError | null => {
    if (tunnel.expiresAt !== null && tunnel.expiresAt <= clock.now()) return EXPIRED;
    if (tunnel.status === "stopped") return STOPPED;
    if (!isExpected(tunnel, ip)) return NOT_ALLOWED;
    return isBlocked(blocks(), tunnel, ip) ? BLOCKED : null;
  };

export const createGate = ({ clock, passes, call, publicUrl, isMember, useCode, blocks }: VisitGateDeps) => {
  const answers = createBoundedCache<{ readonly at: number; readonly may: Promise<boolean> }>(MAX_ANSWERS);

  const lately = (name: string, ask: () => Promise<boolean>): Promise<boolean> => {
    const found = answers.get(name);
    if (found !== undefined && clock.elapsed() - found.at < HOLDS_MS) return found.may;
    const may = ask();
    answers.set(name, { at: clock.elapsed(), may });
    may.catch(() => answers.delete(name));
    return may;
  };

  const isGoodKey = ({ tunnelId, tenantId }: TunnelRow, key: string, ip: string): Promise<boolean> =>
    lately(`${tunnelId}|${ip}|${hashOf(key)}`, async () => {
      const headers = { host: "localhost", "x-api-key": key, "x-svc-tenant-id": tenantId };
      const { status } = await call({ method: "GET", path: `/v1/tunnels/${tunnelId}/enter`, headers, ip });
      return status === 303;
    });
  const isGoodHolder = (tunnel: TunnelRow, holder: PassHolder, ip: string): boolean | Promise<boolean> => {
    if ("token" in holder) return holder.token === tunnel.tokenHash;
    return !isBlocked(blocks(), tunnel, ip, holder.userId) && lately(`${tunnel.tunnelId}|${holder.userId}`, () => isMember(tunnel, holder.userId));
  };

  const cookieFor = (tunnel: TunnelRow, holder: PassHolder, secure: boolean): string =>
    writeCookie(cookieName(secure), passes.cookie(tunnel.tunnelId, holder), { secure, maxAgeSeconds: COOKIE_SECONDS });

  /** A visitor who comes back from the sign-in. */
  const enter = async (tunnel: TunnelRow, { query, secure }: EdgeRequest): Promise<Entrance> => {
    const asked = new URLSearchParams(query);
    const code = asked.get("code") ?? "";
    const holder = passes.readCode(code, tunnel.tunnelId);
    if (holder === null || !(await useCode(code))) return refused(NEEDS_KEY);
    return { kind: "sent", location: localPath(asked.get("path") ?? "/"), cookie: cookieFor(tunnel, holder, secure) };
  };

  const byToken = (tunnel: TunnelRow, request: EdgeRequest): Entrance | null => {
    const given = one(request.message.headers[TOKEN_HEADER]);
    if (given !== undefined) return hashOf(given) === tunnel.tokenHash ? IN : refused(NEEDS_TOKEN);
    const asked = new URLSearchParams(request.query);
    const named = asked.get(TOKEN_QUERY);
    if (named === null) return null;
    if (hashOf(named) !== tunnel.tokenHash) return refused(NEEDS_TOKEN);
    asked.delete(TOKEN_QUERY);
    const query = asked.size === 0 ? "" : `?${asked}`;
    return { kind: "sent", location: localPath(request.path) + query, cookie: cookieFor(tunnel, { token: tunnel.tokenHash }, request.secure) };
  };

  const byCookie = async (tunnel: TunnelRow, { message, secure, ip }: EdgeRequest): Promise<boolean> => {
    const value = readCookie(message.headers.cookie, cookieName(secure));
    const holder = value === null ? null : passes.readCookie(value, tunnel.tunnelId);
    return holder !== null && (await isGoodHolder(tunnel, holder, ip));
  };

  const forToken = async (tunnel: TunnelRow, request: EdgeRequest): Promise<Entrance> =>
    byToken(tunnel, request) ?? ((await byCookie(tunnel, request)) ? IN : refused(NEEDS_TOKEN));
  const forMembers = async (tunnel: TunnelRow, request: EdgeRequest): Promise<Entrance> => {
    const key = one(request.message.headers[KEY_HEADER]);
    if (key !== undefined) return (await isGoodKey(tunnel, key, request.ip)) ? IN : refused(FORBIDDEN);
    if (await byCookie(tunnel, request)) return IN;
    if (!wantsPage(request)) return refused(NEEDS_KEY);
    const path = `${request.path}${request.query === "" ? "" : `?${request.query}`}`.slice(0, 4_000);
    return { kind: "sent", location: `${publicUrl()}/v1/tunnels/${tunnel.tunnelId}/enter?path=${encodeURIComponent(path)}` };
  };

  const judgeAddress = createAddressGate({ clock, blocks });
  return async (tunnel: TunnelRow, request: EdgeRequest): Promise<Entrance> => {
    const closed = judgeAddress(tunnel, request.ip);
    if (closed !== null) return refused(closed);
    if (tunnel.accessMode === "public") return IN;
    if (request.path === ENTER) return enter(tunnel, request);
    return tunnel.accessMode === "token" ? forToken(tunnel, request) : forMembers(tunnel, request);
  };
};
export type Gate = ReturnType<typeof createGate>;

/** Where `enter` sends a visitor who may come in. */
export const entryUrl = (tunnelUrl: string, code: string, path: string): string =>
  new URL(`${ENTER}?code=${encodeURIComponent(code)}&path=${encodeURIComponent(localPath(path))}`, tunnelUrl).href;
