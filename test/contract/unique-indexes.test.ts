// Eight writers of one row at once: one wins, the others get the declared error, and none a 500. Every unique index of the schema says which error that
// is, or why no caller can cause one.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { UNIQUE_INDEXES } from "../../server/platform/database/unique-indexes.ts";
import { type Answer, anonymous, asBearer, type Caller, emailOf, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { initiate } from "./samples.ts";

const WRITERS = 8;

let world: World;
let tenant: TestTenant;
let owner: Caller;
let operator: Caller;
beforeAll(async () => {
  world = await startWorld(
    {
      RATE_LIMIT_STANDARD: "off",
      RATE_LIMIT_ANONYMOUS: "off",
      RATE_LIMIT_PAIRING: "off",
      RATE_LIMIT_INVITES: "off",
      TENANTS_PER_USER: "100",
      TRUSTED_PROXIES: "127.0.0.1/32",
    },
    { spread: true, inProcess: true },
  );
  tenant = await world.tenant();
  [owner, operator] = [await tenant.user("owner"), await world.operator()];
});
afterAll(() => world.close());

type Write = (nth: number) => Promise<Answer>;
/** Prepares what the writers need. */
type Race = () => Promise<Write>;

const call = (as: Caller, route: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> => {
  const [method = "", path = ""] = route.split(" ");
  return world.call(as, method, `/v1${path}`, { headers, ...(body === undefined ? {} : { body }) });
};
const made = async (asked: Promise<Answer>): Promise<Answer["body"]> => {
  const { status, body } = await asked;
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body.data;
};
const each = <T>(make: (nth: number) => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: WRITERS }, (_, nth) => make(nth)));
const slug = (): string => newId("s").toLowerCase().replace("_", "-");
const person = async (userId: string = newId("usr")): Promise<Caller> =>
  asBearer((await world.app.mint({ userId, email: emailOf(userId), ttlSeconds: 600 })).token);

/** By the index and, after a slash, the operation: one writer wins. */
const ONE_WINS: Readonly<Record<string, Race>> = {
  "deployments_living_tenant_name_key/create": async () => {
    const name = newId("dep");
    return () => call(owner, "POST /deployments", { appId: "key-value", name });
  },
  "deployments_living_tenant_name_key/update": async () => {
    const name = newId("dep");
    const ids = await each(async () => (await made(call(owner, "POST /deployments", { appId: "key-value", name: newId("dep") }))).deploymentId);
    return (nth) => call(owner, `PATCH /deployments/${ids[nth]}`, { name });
  },
  mesh_routes_tenant_id_target_hash_key: async () => {
    const { deviceId } = await tenant.device();
    const body = { name: "same", kind: "subnet", network: "10.9.0.0/16", routers: [{ deviceId }], consumers: { all: true } };
    return () => call(owner, "POST /mesh-routes", body);
  },
  mesh_routes_tenant_id_listen_port_key: async () => {
    const { deviceId } = await tenant.device();
    const body = { name: "same", kind: "host", port: 80, listenPort: 8_000, routers: [{ deviceId }], consumers: { all: true } };
    return (nth) => call(owner, "POST /mesh-routes", { ...body, host: `10.8.0.${nth + 1}` });
  },
  tunnels_hostname_key: async () => {
    const { deviceId } = await tenant.device();
    return () => call(owner, `POST /devices/${deviceId}/tunnels`, { targetPort: 80, hostname: "same" });
  },
  custom_domains_tenant_id_hostname_key: async () => {
    const hostname = `${slug()}.example.com`;
    return () => call(owner, "POST /custom-domains", { hostname });
  },
  blocked_entities_tenant_id_entity_type_entity_value_key: async () => {
    const body = { entityType: "device", entityValue: newId("dev"), reason: "stolen" };
    return () => call(owner, "POST /security/blocked-entities", body);
  },
  devices_living_tenant_fingerprint_key: async () => {
    const fingerprint = newId("fp");
    // A machine has one code that counts, so each code is prepared for a machine of its own first.
    const codes = await each(async () => {
      const { code } = await initiate({ world });
      const token = (await made(call(owner, "POST /pairing/prepare-activation", { pairing_code: code, tenant_id: tenant.tenantId }))).activation_token;
      return { pairing_code: code, activation_token: token, user_email: "owner@example.com" };
    });
    await world.sql.query("update pairings set fingerprint = $1 where tenant_id = $2 and device_id is null", [fingerprint, tenant.tenantId]);
    return (nth) => call(anonymous, "POST /pairing/activate", codes[nth]);
  },
  invites_pending_tenant_email_key: async () => {
    const email = `${newId("u").toLowerCase()}@users.example`;
    return () => call(owner, "POST /invites", { email, roleId: "viewer" });
  },
  load_tests_pkey: async () => () => call(owner, `POST /tenants/${tenant.tenantId}/load-test`, { duration: 10, concurrency: 1, endpoints: ["/v1/info"] }),
  memberships_tenant_id_user_id_key: async () => {
    const userId = newId("usr");
    const { link } = await made(call(owner, "POST /invites", { email: emailOf(userId), roleId: "viewer" }));
    const token = new URL(link).searchParams.get("token");
    const invited = await person(userId);
    return () => call(invited, "POST /invites/accept", { token });
  },
  roles_tenant_id_key_key: async () => {
    const name = newId("night");
    return () => call(owner, "POST /roles", { name, permissions: ["device:read"] });
  },
  "tenants_slug_key/create": async () => {
    const wanted = slug();
    const founders = await each(async () => {
      const userId = newId("usr");
      return { userId, as: await person(userId) };
    });
    return (nth) => call(founders[nth]?.as ?? owner, "POST /tenants", { name: "Another", slug: wanted, userId: founders[nth]?.userId });
  },
  "tenants_slug_key/update": async () => {
    const wanted = slug();
    const tenants = await each(async () => {
      const one = await world.tenant();
      return { id: one.tenantId, as: await one.user("owner") };
    });
    return (nth) => call(tenants[nth]?.as ?? owner, `PATCH /tenants/${tenants[nth]?.id}`, { slug: wanted });
  },
  // Without an index: the tenant's webhooks are locked.
  "webhooks by their URL": async () => {
    const body = { url: `https://hooks.example.com/${newId("w")}`, events: ["device.*"] };
    return () => call(owner, "POST /webhooks", body);
  },
};

/** Every writer succeeds, or is told that the first is under way. */
const ALL_WIN: Readonly<Record<string, Race>> = {
  commands_tenant_id_device_id_idempotency_key_key: async () => {
    const [{ deviceId }, idempotencyKey] = [await tenant.device(), newId("key")];
    return () => call(owner, `POST /devices/${deviceId}/commands`, { type: "ping", idempotencyKey });
  },
  desired_versions_pkey: async () => {
    const { deviceId } = await tenant.device();
    return () => call(owner, "POST /apps", { appType: "key-value", deviceId, config: {} });
  },
  feature_flag_overrides_pkey: async () => () => call(operator, "PUT /admin/flags/loadTests", { enabled: true, tenantId: tenant.tenantId }),
  feature_flags_pkey: async () => () => call(operator, "PUT /admin/flags/loadTests", { enabled: true }),
  idempotency_keys_pkey: async () => {
    const key = newId("key");
    return () => call(owner, "POST /api-keys", { name: "once" }, { "idempotency-key": key });
  },
  security_rules_pkey: async () => () => call(owner, "PATCH /security/rules/srl_B0AuthFailedBurst0000000", { enabled: false }),
  slug_reservations_pkey: async () => {
    const one = await world.tenant();
    const as = await one.user("owner");
    return () => call(as, `PATCH /tenants/${one.tenantId}`, { slug: slug() });
  },
  tenant_settings_pkey: async () => {
    const one = await world.tenant();
    const as = await one.user("owner");
    return () => call(as, `PATCH /tenants/${one.tenantId}/settings`, { defaultTimezone: "Europe/Lisbon" });
  },
  user_profiles_pkey: async () => {
    const as = await person();
    return () => call(as, "PATCH /account", { name: "Kim" });
  },
  users_pkey: async () => {
    const userId = newId("usr");
    const links = await each(async () => (await world.app.signInLink({ userId })).token);
    return (nth) => call(anonymous, "POST /auth/sign-in", { token: links[nth] });
  },
};

const indexOf = (race: string): string => race.split("/")[0] ?? "";
const outcome = ({ status, body }: Answer): string => (status < 300 ? "success" : `${status} ${body?.code}`);
const race = async (given: Race | undefined): Promise<readonly Answer[]> => {
  if (given === undefined) throw new Error("no such race");
  const write = await given();
  return each(write);
};

describe("eight writers at once", () => {
  test.each(Object.keys(ONE_WINS))("have one winner: %s", { timeout: 30_000 }, async (name) => {
    const outcomes = (await race(ONE_WINS[name])).map(outcome);
    const losers = outcomes.filter((each) => each !== "success");
    expect([name, outcomes.length - losers.length, losers.filter((each) => !each.startsWith("409 "))]).toEqual([name, 1, []]);
    const meaning = UNIQUE_INDEXES[indexOf(name)];
    // An invite that has been answered says so before the membership does, and a code its own state.
    if (meaning !== undefined && "error" in meaning && !/^(?:memberships|devices)_/.test(name))
      expect(new Set(losers)).toEqual(new Set([`409 ${meaning.error}`]));
  });

  test.each(Object.keys(ALL_WIN))("all succeed, or wait for the first: %s", { timeout: 30_000 }, async (name) => {
    const outcomes = (await race(ALL_WIN[name])).map(outcome);
    expect(outcomes).toContain("success");
    expect(outcomes.filter((each) => each !== "success" && each !== "409 IDEMPOTENCY_IN_PROGRESS")).toEqual([]);
  });

  test("the loser of a name learns the name", async () => {
    const losers = (await race(ONE_WINS["tenants_slug_key/update"])).filter(({ status }) => status === 409);
    for (const { body } of losers) expect(body.message).toBe(`The slug ${body.details.slug} is taken.`);
    expect(losers).toHaveLength(WRITERS - 1);
  });
});

describe("every unique index of the schema", () => {
  const indexes = async (): Promise<readonly string[]> => {
    const { rows } = await world.sql.query(
      `select i.relname as name from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
       where x.indisunique and t.relnamespace = 'public'::regnamespace and not t.relispartition order by 1`,
    );
    return rows.map(({ name }) => name);
  };

  test("says what a second row means", async () => {
    expect(Object.keys(UNIQUE_INDEXES).sort()).toEqual([...(await indexes())].sort());
  });

  test("that a caller can meet has its race above", () => {
    const named = (kind: "error" | "merges") => Object.entries(UNIQUE_INDEXES).flatMap(([name, meaning]) => (kind in meaning ? [name] : []));
    expect(
      new Set(
        Object.keys(ONE_WINS)
          .map(indexOf)
          .filter((name) => name in UNIQUE_INDEXES),
      ),
    ).toEqual(new Set(named("error")));
    expect(new Set(Object.keys(ALL_WIN))).toEqual(new Set(named("merges")));
  });
});
