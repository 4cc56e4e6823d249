// Keeps the documents of the agent protocol true: their examples pass the contract's schemas, they omit no frame, ack status, code, state or setting of
// the contract, and each rule has a name.
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  ACK_STATUSES,
  AckResult,
  AgentFrame,
  CAPABILITIES,
  CLOSE,
  CommandStatus,
  ERRORS,
  HEADERS,
  HEADERS_V2,
  PAIRING_STATUSES,
  PairingActivateResponse,
  PolledCommand,
  ServerFrame,
  SUBPROTOCOL,
} from "../../protocol/index.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";
import { documents, examples, readme } from "./examples.ts";

const frames = [ServerFrame, AgentFrame] as const;
const rowOf = (cell: string): string | undefined => readme.split("\n").find((line) => line.startsWith("|") && line.split("|")[1]?.includes(cell));

test.each(examples.frames.map((frame) => [JSON.stringify(frame).slice(0, 60), frame] as const))("the example %s passes its schema", (_, frame) => {
  expect(frames.map((schema) => schema.safeParse(frame)).filter(({ success }) => success)).not.toHaveLength(0);
});
test("the REST examples pass their schemas", () => {
  expect(z.object({ data: z.array(PolledCommand).length(1) }).safeParse(examples.poll).error).toBeUndefined();
  const { infrastructure_secrets, ...identity } = PairingActivateResponse.parse({ ...(examples.identity as object), infrastructure_secrets: {} });
  expect([infrastructure_secrets, identity.device_id]).toEqual([{}, expect.any(String)]);
  const { error, code, details } = z
    .object({ error: z.object({ code: z.string(), details: z.unknown() }), code: z.string(), details: z.unknown() })
    .parse(examples.refusal);
  expect([error.code, error.details]).toEqual([code, details]);
});

describe("completeness", () => {
  const ops = (schema: typeof ServerFrame | typeof AgentFrame): readonly string[] => schema.options.map(({ shape }) => shape.op.value);
  test.each([...ops(ServerFrame), ...ops(AgentFrame)])("the frame %s has an example", (op) => expect(examples.frames.map((frame) => frame.op)).toContain(op));
  test.each(Object.values(CLOSE))("the close code $code is in the table", ({ code, token }) => expect(rowOf(String(code))).toContain(`\`${token}\``));
  test.each(ACK_STATUSES)("the ack status %s is in the table", (word) => expect(rowOf(`\`${word}\``)).toBeDefined());
  test.each(CommandStatus.options)("the state %s is in the table", (word) => expect(rowOf(`\`${word}\``)).toBeDefined());
  test.each([
    ...Object.values(HEADERS),
    ...Object.values(HEADERS_V2),
    ...CAPABILITIES,
    ...PAIRING_STATUSES,
    ...AckResult.shape.result.options,
    SUBPROTOCOL,
    "/v1/agent/me",
    "/v1/agent/config",
    "/v1/pairing/initiate",
    "/v1/pairing/activate",
    "/v1/pairing/auto-activate",
    "/v1/pairing/status",
  ])("README names %s", (name) => expect(readme).toMatch(new RegExp(`[\`"](\\w+ )?${name.replaceAll("/", "\\/")}[\`"?]`)));
  test("the table of refusals lists every refusal of the upgrade", () => {
    for (const code of ["UNAUTHORIZED", "INVALID_SIGNATURE", "FORBIDDEN", "TENANT_SUSPENDED", "PROTOCOL_UNSUPPORTED", "NODE_DRAINING"])
      expect(readme).toMatch(new RegExp(`\\| ${ERRORS[code as keyof typeof ERRORS].status} \\|.*\`${code}\``));
  });
});

test("the example of welcome shows the gateway's default settings", () => {
  const welcome = examples.frames.find(({ op }) => op === "welcome")?.data;
  const { heartbeatSeconds, heartbeatJitterPct, maxFrameBytes, maxOutputBytes, maxInFlight, inboundPerSecond, reconnect, pollSeconds, sessionMaxAgeMs } =
    channelSettings();
  expect(welcome).toMatchObject({
    capabilities: expect.arrayContaining([...CAPABILITIES]),
    heartbeat: { intervalSec: heartbeatSeconds, jitterPct: heartbeatJitterPct },
    limits: { maxFrameBytes, maxOutputBytes, maxInFlight, inboundPerSec: inboundPerSecond },
    reconnect,
    poll: { intervalSec: pollSeconds },
    sessionMaxAgeSec: sessionMaxAgeMs / 1_000,
  });
});

describe("links", () => {
  const anchorsOf = (text: string): readonly string[] =>
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    );
  const links = [...documents].flatMap(([name, text]) => [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target = ""]) => [name, target] as const));
  test.each(links)("in %s the link %s has a target", (name, target) => {
    const [file = "", anchor] = target.split("#");
    const linked = documents.get(file === "" ? name : file);
    if (linked !== undefined && anchor !== undefined) expect(anchorsOf(linked)).toContain(anchor);
    else expect(existsSync(new URL(`../../protocol/${file}`, import.meta.url))).toBe(true);
  });
});

describe("rules", () => {
  const text = documents.get("README.md") ?? "";
  const pairing = documents.get("pairing.md") ?? "";
  const anchors = [...text.matchAll(/\*\*(R(\d+)\.\d+)\*\*/g)];
  test("each has one name, under its section", () => {
    const section = (at: number): string => [...text.slice(0, at).matchAll(/^## (\d+)\./gm)].at(-1)?.[1] ?? "0";
    expect(anchors.length).toBeGreaterThan(30);
    // Pairing is section 1, in a document of its own.
    expect([...pairing.matchAll(/\*\*(R\d+)\.\d+\*\*/g)].map(([, section]) => section).every((section) => section === "R1")).toBe(true);
    expect(new Set(anchors.map(([, name]) => name)).size).toBe(anchors.length);
    expect(anchors.filter(({ 2: number, index }) => number !== section(index)).map(([, name]) => name)).toEqual([]);
  });
  test("each says MUST, SHOULD or MAY, or is one of the three rules that an agent MUST follow", () => {
    const sentences = text.split(/(?=\*\*R\d+\.\d+\*\*)/).slice(1);
    const silent = sentences.filter((sentence) => !/\b(?:MUST|SHOULD|MAY)\b/.test(sentence.split("\n\n")[0] ?? "")).map((sentence) => sentence.slice(2, 6));
    expect(silent).toEqual(["R9.1", "R9.2", "R9.3"]);
  });
});
