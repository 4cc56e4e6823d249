// A driver that has lost a member on which we rely says so at its first session; and the driver that is installed has them all.
import pg from "pg";
import { expect, test } from "vitest";
import { demandDriver, startupOf } from "../../../server/platform/database/driver.ts";
import { DatabaseSession } from "../../../server/platform/database/pool.ts";

test("a session of the installed driver has what the gateway needs, and asks for UTC", () => {
  const session = new DatabaseSession({ user: "u", database: "d" });
  expect(() => demandDriver(session)).not.toThrow();
  expect(session.getStartupConf()).toMatchObject({ user: "u", database: "d", TimeZone: "UTC" });
});

test.each(["connectionParameters", "processID", "secretKey"])("a driver without %s is refused by its name", (name) => {
  const session = new pg.Client();
  Reflect.deleteProperty(session, name);
  expect(() => demandDriver(session)).toThrow(`no usable "${name}"`);
});

test("a driver that reads no query_timeout is refused, as calls would wait without a limit", () => {
  expect(() => demandDriver({ connectionParameters: {}, processID: null, secretKey: null })).toThrow('no usable "connectionParameters"');
});

test("a driver without getStartupConf is refused, as its sessions would not be in UTC", () => {
  const { prototype } = pg.Client;
  const kept = Object.getOwnPropertyDescriptor(prototype, "getStartupConf");
  Reflect.deleteProperty(prototype, "getStartupConf");
  try {
    expect(() => startupOf(new pg.Client())).toThrow('no usable "getStartupConf"');
  } finally {
    Object.defineProperty(prototype, "getStartupConf", kept ?? {});
  }
});
