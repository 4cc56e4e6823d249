// The members of the PostgreSQL driver's client that we need, that its types do not declare and for which it has no setting. A driver without one of them
// fails at its first session and names the member: otherwise sessions would run in a wrong time zone, or statements without their limit.
import pg from "pg";

interface DriverClient {
  /** The driver reads its settings for each statement. */
  readonly connectionParameters: { query_timeout: number | false };
  /** Both null until the session is open. */
  readonly processID: number | null;
  readonly secretKey: number | null;
}

interface DriverPrototype {
  /** What the driver says at the start of a session. */
  getStartupConf(): object;
}

const isNumberOrNull = (value: unknown): boolean => value === null || typeof value === "number";

const CLIENT: Readonly<Record<keyof DriverClient, (value: unknown) => boolean>> = {
  connectionParameters: (value) => typeof value === "object" && value !== null && "query_timeout" in value,
  processID: isNumberOrNull,
  secretKey: isNumberOrNull,
};
const PROTOTYPE: Readonly<Record<keyof DriverPrototype, (value: unknown) => boolean>> = { getStartupConf: (value) => typeof value === "function" };

const demand = (given: object, members: Readonly<Record<string, (value: unknown) => boolean>>): void => {
  for (const [name, isUsable] of Object.entries(members))
    if (!isUsable(Reflect.get(given, name)))
      throw new Error(`this version of the PostgreSQL driver has no usable "${name}"; install the one that package.json names`);
};

export function demandDriver(client: object): asserts client is DriverClient {
  demand(client, CLIENT);
}

function demandStartup(prototype: object): asserts prototype is DriverPrototype {
  demand(prototype, PROTOTYPE);
}

/** What the driver itself says at the start of a session. */
export const startupOf = (client: pg.Client): object => {
  const prototype: object = pg.Client.prototype;
  demandStartup(prototype);
  return prototype.getStartupConf.call(client);
};
