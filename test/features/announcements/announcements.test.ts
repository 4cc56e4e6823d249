// Announcements: who reads them and when, who dismisses them, and that only operators write them.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { runJob } from "../../kit/gateway/run-job.ts";
import { anonymous, type Caller, startWorld, type World } from "../../kit/gateway/world.ts";

let world: World;
let operator: Caller;
let person: Caller;
let other: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_ANONYMOUS: "off" }, { inProcess: true });
  operator = await world.operator();
  const tenant = await world.tenant();
  [person, other] = [await tenant.user("viewer"), await tenant.user("owner")];
});
afterAll(() => world.close());
beforeEach(() => world.sql.query("delete from announcements"));

const announce = async (body: object): Promise<{ readonly announcementId: string; readonly version: number }> =>
  (await world.call(operator, "POST", "/v1/admin/announcements", { body })).body.data;
const publicTitles = async (): Promise<string[]> =>
  (await world.call(anonymous, "GET", "/v1/info")).body.data.announcements.map(({ title }: { title: string }) => title);
const titlesOf = async (caller: Caller): Promise<string[]> =>
  (await world.call(caller, "GET", "/v1/auth/me")).body.data.announcements.map(({ title }: { title: string }) => title);
const hours = (count: number): string => new Date(Date.now() + count * 3_600_000).toISOString();

test("everybody reads what is announced now, the most severe first, and nobody what has not begun, has ended or was deleted", async () => {
  await announce({ title: "tip" });
  const outage = await announce({ title: "outage", severity: "critical" });
  await announce({ title: "next week", startsAt: hours(168), endsAt: hours(170) });
  const past = await announce({ title: "past", startsAt: hours(-2), endsAt: hours(1) });
  await world.sql.query("update announcements set ends_at = now() - interval '1 hour' where announcement_id = $1", [past.announcementId]);
  await announce({ title: "maintenance", severity: "warning", endsAt: hours(3) });
  expect(await publicTitles()).toEqual(["outage", "maintenance", "tip"]);
  expect(await titlesOf(person)).toEqual(["outage", "maintenance", "tip"]);
  expect((await world.call(operator, "DELETE", `/v1/admin/announcements/${outage.announcementId}`)).status).toBe(204);
  expect(await publicTitles()).toEqual(["maintenance", "tip"]);
});

test("who dismisses one does not see it again, everybody else does, and a critical one stays", async () => {
  const { announcementId, version } = await announce({ title: "new feature" });
  const dismiss = () => world.call(person, "POST", `/v1/account/announcements/${announcementId}/dismiss`);
  expect([(await dismiss()).status, (await dismiss()).status]).toEqual([204, 204]);
  expect(await titlesOf(person)).not.toContain("new feature");
  expect(await titlesOf(other)).toContain("new feature");
  const raised = await world.call(operator, "PATCH", `/v1/admin/announcements/${announcementId}`, { body: { severity: "critical", version } });
  expect(raised.body.data).toMatchObject({ severity: "critical", title: "new feature", version: version + 1 });
  expect(await titlesOf(person)).toContain("new feature");
  expect((await dismiss()).body.code).toBe("ANNOUNCEMENT_NOT_DISMISSIBLE");
});

test("one that is not shown yet cannot be found by those who do not run the installation", async () => {
  const { announcementId } = await announce({ title: "secret plan", startsAt: hours(1) });
  const refused = await world.call(person, "POST", `/v1/account/announcements/${announcementId}/dismiss`);
  expect([refused.status, refused.body.code]).toEqual([404, "ANNOUNCEMENT_NOT_FOUND"]);
  expect((await world.call(other, "GET", "/v1/admin/announcements")).body.code).toBe("ADMIN_REQUIRED");
});

test("a period that ends before it begins is refused, also by a change of one side", async () => {
  const { announcementId } = await announce({ title: "window", startsAt: hours(1), endsAt: hours(2) });
  const changed = await world.call(operator, "PATCH", `/v1/admin/announcements/${announcementId}`, { body: { startsAt: hours(3) } });
  expect([changed.status, changed.body.code]).toEqual([422, "ANNOUNCEMENT_PERIOD_INVALID"]);
  expect((await world.call(operator, "GET", `/v1/admin/announcements/${announcementId}`)).body.data.version).toBe(1);
});

test("90 days after its end an announcement is deleted", async () => {
  const [old, recent] = [
    await announce({ title: "old", startsAt: hours(1), endsAt: hours(2) }),
    await announce({ title: "recent", startsAt: hours(1), endsAt: hours(2) }),
  ];
  const endAgo = (id: string, days: number) =>
    world.sql.query("update announcements set ends_at = now() - make_interval(days => $2) where announcement_id = $1", [id, days]);
  await endAgo(old.announcementId, 91);
  await endAgo(recent.announcementId, 89);
  await runJob(world, "announcements.delete-ended");
  const statusOf = async (id: string) => (await world.call(operator, "GET", `/v1/admin/announcements/${id}`)).status;
  expect([await statusOf(old.announcementId), await statusOf(recent.announcementId)]).toEqual([404, 200]);
});
