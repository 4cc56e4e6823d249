// Invites by mail: the link is in the mail and nowhere else, and what became of the mail is visible.
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, asBearer, type Caller, emailOf, startWorld, type World } from "../../kit/gateway/world.ts";
import { startSmtpServer } from "../../kit/net/smtp.ts";

const BOUNCES = "bounces@users.example";

let smtp: Awaited<ReturnType<typeof startSmtpServer>>;
let world: World;
const logged: string[] = [];
beforeAll(async () => {
  smtp = await startSmtpServer({
    onRcptTo: ({ address }, _session, done) => done(address === BOUNCES ? Object.assign(new Error("No such user"), { responseCode: 550 }) : null),
  });
  const write = (...parts: unknown[]): void => void logged.push(JSON.stringify(parts));
  const log = { trace: write, debug: write, info: write, warn: write, error: write, fatal: write, child: () => log };
  world = await startWorld(
    { SMTP_URL: smtp.url, MAIL_FROM: "Mooring <mooring@gateway.example>", PORTAL_URL: "https://portal.example/app" },
    { log: log as never },
  );
});
afterAll(async () => {
  await world.close();
  await smtp.close();
});

const openOwner = async (): Promise<Caller> => (await world.tenant()).user("owner");
const create = (as: Caller, email: string): Promise<Answer> =>
  world.call(as, "POST", "/v1/invites", { body: { email, roleId: "viewer", message: "See you <there>" } });
const mailTo = (address: string, nth = 0) =>
  eventually(() => {
    const mail = smtp.mails.filter(({ to }) => to.includes(address))[nth];
    if (mail === undefined) throw new Error(`no mail to ${address} yet`);
    return mail.raw
      .replace(/=\r\n/g, "")
      .replace(/=3D/g, "=")
      .replace(/\r\n +/g, " ");
  });
const tokenIn = (raw: string): string => /https:\/\/portal\.example\/app\/invite\?token=([\w-]{43})/.exec(raw)?.[1] ?? "";

test("an invite is mailed with a link that the invited person can use; the answer and the log do not have it", async () => {
  const owner = await openOwner();
  const userId = newId("usr");
  const made = await create(owner, emailOf(userId));
  expect(made.body.data).toMatchObject({ delivery: { status: "queued", attempts: 0, lastError: null } });
  expect(made.body.data.link).toBeUndefined();
  const raw = await mailTo(emailOf(userId));
  expect(raw).toMatch(/^Subject: owner-\S+@users\.example invites you to Tenant/m);
  expect(raw).toContain("See you &lt;there&gt;");
  const token = tokenIn(raw);
  await eventually(async () =>
    expect((await world.call(owner, "GET", `/v1/invites/${made.body.data.inviteId}`)).body.data.delivery).toEqual({
      status: "sent",
      attempts: 1,
      lastError: null,
    }),
  );
  expect(JSON.stringify([made.body, logged])).not.toContain(token);
  const person = asBearer((await world.app.mint({ userId, email: emailOf(userId), ttlSeconds: 600 })).token);
  expect((await world.call(person, "POST", "/v1/invites/accept", { body: { token } })).status).toBe(200);
});

test("a mail that bounces at once is visible on its invite and in the metrics, and sending again orders another", async () => {
  const owner = await openOwner();
  const { inviteId } = (await create(owner, BOUNCES)).body.data;
  const shown = async () => (await world.call(owner, "GET", "/v1/invites")).body.data.find((each: { inviteId: string }) => each.inviteId === inviteId);
  await eventually(async () => expect((await shown()).delivery).toEqual({ status: "failed", attempts: 1, lastError: expect.stringContaining("No such user") }));
  const metrics = await fetch(`http://127.0.0.1:${world.app.internalPort()}/metrics`, { headers: { authorization: `Bearer ${world.app.internalToken}` } });
  expect(await metrics.text()).toMatch(/^mooring_mails\{status="failed"\} 1$/m);
  const again = await world.call(owner, "POST", `/v1/invites/${inviteId}/resend`, { body: {} });
  expect(again.body.data).toMatchObject({ sendCount: 2, delivery: { status: "queued", attempts: 0 } });
});

test("health says whether the mail server takes mail", async () => {
  const { body } = await world.call(await openOwner(), "GET", "/v1/health/full");
  expect(JSON.stringify(body)).toContain('"mail"');
});
