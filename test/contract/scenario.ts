// How a scenario provokes an error code: who stands ready, and the calls that it makes.
import { type Answer, anonymous, type Caller, type CallOptions, type World } from "../kit/gateway/world.ts";
import type { Stock } from "./samples.ts";

export interface Stage {
  readonly world: World;
  readonly odd: World;
  readonly stock: Stock;
}

/** Makes the failing call, once for each shape of the body. */
export type Send = (prefix: "/v1" | "/api/v1", headers: Readonly<Record<string, string>>) => Promise<Answer>;
export type Probe = (send: Send) => Promise<void>;
export type Scenario = (stage: Stage, probe: Probe) => Promise<void>;

export type Given = CallOptions & { readonly as?: Caller };
export const call =
  (world: World, method: string, path: string, { as = anonymous, ...options }: Given = {}): Send =>
  (prefix, headers) =>
    // One shape of each error goes over HTTP, which writes its status and headers. The others differ in their bodies alone.
    (prefix === "/v1" && Object.keys(headers).length === 0 ? world.callOverHttp : world.call)(as, method, `${prefix}${path}`, {
      ...options,
      headers: { ...options.headers, ...headers },
    });
/** Calls as the owner of the stock. */
export const own = ({ world, stock }: Stage, method: string, path: string, options: CallOptions = {}): Send =>
  call(world, method, path, { as: stock.owner, ...options });
/** A preparatory call, which must succeed. */
export const done = async (world: World, as: Caller, route: string, options: CallOptions = {}): Promise<Answer["body"]> => {
  const [method = "", path = ""] = route.split(" ");
  const answer = await world.call(as, method, `/v1${path}`, options);
  if (answer.status >= 300) throw new Error(`${method} ${path} failed with ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body?.data;
};
export const fresh = async ({ world }: Stage) => {
  const tenant = await world.tenant();
  return { tenant, owner: await tenant.user("owner") };
};
