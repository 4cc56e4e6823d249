// Outgoing mail: sent by one node, kept while the server is away, given up when it is refused, and never able to carry a header of a stranger's.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestClock, systemClock } from "../../../server/core/clock.ts";
import { renderLetter } from "../../../server/core/ports/mail.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { createMails, MAX_ATTEMPTS, retrySeconds } from "../../../server/platform/mail/mail.ts";
import { createSmtp, type SendMail } from "../../../server/platform/mail/smtp.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { refusing, startSmtpServer } from "../../kit/net/smtp.ts";
import { createTestDatabase, namedStatements } from "../../kit/stores/database.ts";

const secretBox = createSecretBox(randomBytes(32));
const letter = { subject: "Come in", lines: ["Hello", 'a < b & "c"'], link: { label: "Open", url: "https://portal.example/invite?a=1&token=SECRET" } };

let db: Db;
beforeAll(async () => {
  db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 8, log: silentLog, namedStatements });
});
afterAll(() => db.close());

const open = (send: SendMail | null) => {
  const mails = createMails({ db, clock: createTestClock(new Date()), secretBox, send, log: silentLog });
  const order = (to: string) => db.tx((tx) => mails.order(tx, { tenantId: null, to, letter }));
  const sendDue = async (signal = new AbortController().signal) => {
    while ((await mails.jobs.find(({ name }) => name === "mails.send")?.run(signal)) === true);
  };
  const delivery = async (mailId: string | null) => (await mails.deliveries(db, [mailId ?? ""])).get(mailId ?? "");
  return { mails, order, sendDue, delivery };
};
const overSmtp = (url: string) => open(createSmtp({ url, from: "Mooring <mooring@gateway.example>" }));
const makeDue = () => db.query("update mails set next_attempt_at = now() - interval '1 second' where status = 'queued'");
const contentOf = async (mailId: string | null) =>
  (await db.query<{ content: Buffer | null }>("select content from mails where mail_id = $1", [mailId]))[0]?.content;

describe("a mail", () => {
  test("is sent once, with its id, and its text is kept only until then, encrypted", async () => {
    const server = await startSmtpServer();
    const { order, sendDue, delivery } = overSmtp(server.url);
    const mailId = await order("sam@users.example");
    expect((await contentOf(mailId))?.includes("SECRET")).toBe(false);
    await sendDue();
    await makeDue();
    await sendDue();
    expect(server.mails).toHaveLength(1);
    const [{ raw, to, from } = { raw: "", to: [], from: "" }] = server.mails;
    expect([from, to]).toEqual(["mooring@gateway.example", ["sam@users.example"]]);
    expect(raw).toContain(`Message-ID: <${mailId}@gateway.example>`);
    expect(raw).toContain("Auto-Submitted: auto-generated");
    expect(raw).toContain("multipart/alternative");
    expect(await delivery(mailId)).toEqual({ status: "sent", attempts: 1, lastError: null });
    expect(await contentOf(mailId)).toBeNull();
    await server.close();
  });

  test("waits while the server is away and arrives once it is back", async () => {
    const gone = await startSmtpServer();
    const { port, url } = gone;
    await gone.close();
    const { mails, order, sendDue, delivery } = overSmtp(url);
    const mailId = await order("sam@users.example");
    await sendDue();
    expect(await delivery(mailId)).toEqual({ status: "queued", attempts: 1, lastError: expect.stringMatching(/could not be reached/) });
    expect((await delivery(mailId))?.lastError).not.toContain(String(port));
    expect(mails.isDelivering()).toBe(false);
    await sendDue();
    expect((await delivery(mailId))?.attempts).toBe(1);
    const back = await startSmtpServer({}, port);
    await makeDue();
    await sendDue();
    expect(back.mails).toHaveLength(1);
    expect(await delivery(mailId)).toEqual({ status: "sent", attempts: 2, lastError: null });
    expect(mails.isDelivering()).toBe(true);
    await back.close();
  });

  test("that the server refuses for good is given up at once, with the server's words", async () => {
    const server = await startSmtpServer(refusing(550, "No such user here"));
    const { mails, order, sendDue, delivery } = overSmtp(server.url);
    const failed = async () => {
      const counted = (await mails.gauges[0]?.read()) as Iterable<readonly [{ readonly status: string }, number]>;
      return [...counted].find(([{ status }]) => status === "failed")?.[1] ?? 0;
    };
    const before = await failed();
    const mailId = await order("nobody@users.example");
    await sendDue();
    expect(await delivery(mailId)).toEqual({ status: "failed", attempts: 1, lastError: expect.stringContaining("No such user here") });
    expect(await contentOf(mailId)).toBeNull();
    // One bad address says nothing about the server.
    expect(mails.isDelivering()).toBe(true);
    expect(await failed()).toBe(before + 1);
    await server.close();
  });

  test("that the server refuses for now is tried again, until its attempts are used up", async () => {
    const server = await startSmtpServer(refusing(451, "Greylisted"));
    const { order, sendDue, delivery } = overSmtp(server.url);
    const mailId = await order("sam@users.example");
    for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
      await sendDue();
      expect(await delivery(mailId)).toMatchObject({ status: "queued", attempts: attempt });
      await makeDue();
    }
    await sendDue();
    expect(await delivery(mailId)).toEqual({ status: "failed", attempts: MAX_ATTEMPTS, lastError: expect.stringContaining("Greylisted") });
    await server.close();
  });

  test("is tried again if the server refuses our sign-in, which the operator can repair", async () => {
    const server = await startSmtpServer({ authOptional: false, allowInsecureAuth: true, onAuth: (_auth, _session, done) => done(new Error("Invalid login")) });
    const { order, sendDue, delivery } = overSmtp(server.url.replace("//", "//user:wrong@"));
    const mailId = await order("sam@users.example");
    await sendDue();
    expect(await delivery(mailId)).toMatchObject({ status: "queued", lastError: "the mail server refuses our sign-in" });
    await db.query("delete from mails where mail_id = $1", [mailId]);
    await server.close();
  });

  test("is not lost if the node dies while it sends, and goes out under the same id", async () => {
    const { order, sendDue } = open(() => new Promise(() => undefined));
    const mailId = await order("sam@users.example");
    void sendDue();
    await eventually(async () => expect(await db.query("select attempts from mails where mail_id = $1", [mailId])).toEqual([{ attempts: 1 }]));
    const parcels: string[] = [];
    const other = open(async (parcel) => void parcels.push(parcel.mailId));
    await other.sendDue();
    expect(parcels).toEqual([]);
    await makeDue();
    await other.sendDue();
    expect(parcels).toEqual([mailId]);
  });

  test("is sent by one of several nodes", async () => {
    const sent: string[] = [];
    const nodes = Array.from({ length: 4 }, () => open(async ({ mailId }) => void sent.push(mailId)));
    const ordered = await Promise.all(Array.from({ length: 40 }, (_, at) => nodes[0]?.order(`p${at}@users.example`)));
    await Promise.all(nodes.map(({ sendDue }) => sendDue()));
    expect([...sent].sort()).toEqual([...ordered].sort());
  });

  test("that is taken back is not sent", async () => {
    const sent: string[] = [];
    const { mails, order, sendDue, delivery } = open(async ({ mailId }) => void sent.push(mailId));
    const mailId = (await order("sam@users.example")) ?? "";
    await db.tx((tx) => mails.cancel(tx, mailId));
    await sendDue();
    expect([sent, await delivery(mailId)]).toEqual([[], undefined]);
  });

  test("is not ordered without a mail server, or to what is no address", async () => {
    expect(await open(null).order("sam@users.example")).toBeNull();
    const { order } = open(async () => undefined);
    for (const to of ["", "sam", "a@b.example, c@d.example", "a@b.example\r\nBcc: c@d.example", "<a@b.example>", '"a\0"@b.example'])
      expect([to, await order(to)]).toEqual([to, null]);
  });

  test("rolls back with its cause", async () => {
    const sent: string[] = [];
    const { mails, sendDue } = open(async ({ mailId }) => void sent.push(mailId));
    const failing = db.tx(async (tx) => {
      await mails.order(tx, { tenantId: null, to: "sam@users.example", letter });
      throw new Error("the cause failed");
    });
    await expect(failing).rejects.toThrow("the cause failed");
    await sendDue();
    expect(sent).toEqual([]);
  });
});

describe("a letter", () => {
  test("keeps a stranger's text out of its headers and its markup", async () => {
    const server = await startSmtpServer();
    const { mails, sendDue } = overSmtp(server.url);
    const evil = { subject: "Hi\r\nBcc: eve@evil.example\u2028X: y\0", lines: ["<script>alert(1)</script>\r\n.\r\nMAIL FROM:<eve@evil.example>"] };
    await db.tx((tx) => mails.order(tx, { tenantId: null, to: "sam@users.example", letter: evil }));
    await sendDue();
    expect(server.mails.map(({ to }) => to)).toEqual([["sam@users.example"]]);
    const raw = server.mails[0]?.raw ?? "";
    const [headers = ""] = raw.split("\r\n\r\n");
    expect(headers.split("\r\n").filter((line) => /^(bcc|x):/i.test(line))).toEqual([]);
    expect(raw).not.toContain("<script>alert(1)</script></p>");
    await server.close();
  });

  test("is plain text and escaped HTML", () => {
    expect(renderLetter(letter)).toEqual({
      subject: "Come in",
      text: 'Hello\n\na < b & "c"\n\nOpen:\nhttps://portal.example/invite?a=1&token=SECRET',
      html: [
        "<p>Hello</p>",
        "<p>a &lt; b &amp; &quot;c&quot;</p>",
        '<p><a href="https://portal.example/invite?a=1&amp;token=SECRET">Open</a></p>',
        "<p>https://portal.example/invite?a=1&amp;token=SECRET</p>",
      ].join("\n"),
    });
  });
});

test("retries wait from half a minute to four hours, 16 hours in all", () => {
  const delays = Array.from({ length: MAX_ATTEMPTS - 1 }, (_, at) => retrySeconds(at + 1, () => 0.5));
  expect([delays[0], delays.at(-1)]).toEqual([30, 14_400]);
  expect(delays.reduce((sum, each) => sum + each, 0) / 3_600).toBeCloseTo(16.3, 0);
  expect([retrySeconds(1, () => 0), retrySeconds(1, () => 1)]).toEqual([24, 36]);
});
