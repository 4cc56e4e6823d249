// The verdicts as a page, docs/websocket-conformance.md.
import type { Case } from "./case.ts";
import type { Verdict } from "./judge.ts";

export type Judged = Pick<Case, "id" | "title"> & { readonly verdict: Verdict };

const GROUPS: readonly [group: string, about: string][] = [
  ["1", "Framing"],
  ["2", "Pings and pongs"],
  ["3", "Reserved bits"],
  ["4", "Opcodes"],
  ["5", "Fragments"],
  ["6", "UTF-8"],
  ["7", "Closing"],
  ["10", "Many fragments"],
];
const NOT_APPLICABLE: readonly [group: string, about: string, count: number, why: string][] = [
  ["9", "Limits and speed", 54, "messages of up to 16 MiB, where the agent socket takes 256 KiB; a measure of speed, not of the protocol"],
  ["12", "Compression", 90, "compression is off"],
  ["13", "Compression", 126, "compression is off"],
];
const VERDICTS = ["passed", "non-strict", "informational", "failed"] as const;

const groupOf = ({ id }: Pick<Case, "id">): string => id.split(".")[0] ?? "";
const row = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [row(head), row(head.map(() => "---")), ...rows.map(row)].join("\n");
const counts = (cases: readonly Judged[]): readonly number[] => VERDICTS.map((wanted) => cases.filter(({ verdict }) => verdict === wanted).length);

export const summary = (cases: readonly Judged[]): string =>
  table(
    ["Group", "About", "Cases", ...VERDICTS, "not applicable"],
    [
      ...GROUPS.map(([group, about]) => {
        const members = cases.filter((each) => groupOf(each) === group);
        return [group, about, members.length, ...counts(members), 0];
      }),
      ...NOT_APPLICABLE.map(([group, about, count]) => [group, about, count, ...VERDICTS.map(() => 0), count]),
      [
        "",
        "All",
        cases.length + NOT_APPLICABLE.reduce((sum, [, , count]) => sum + count, 0),
        ...counts(cases),
        NOT_APPLICABLE.reduce((sum, [, , count]) => sum + count, 0),
      ],
    ],
  );

export const page = (cases: readonly Judged[]): string => `# WebSocket conformance

A port of the cases of the Autobahn|Testsuite, groups 1 to 7 and 10, written anew from the published list of cases: their number, order and
expectations are the suite's, the words in the payloads are ours. They run in \`npm test\`
against the agent socket's own layer and frame options (\`server/gateway/uws/socket.ts\`, \`SOCKET_LIMITS\`), with a handler that echoes.
\`WRITE_CONFORMANCE=1 npx vitest run --config test/vitest.config.ts test/channel/autobahn.test.ts\` writes this page; without it, the run fails
when the page does not say what was seen.

${summary(cases)}

- **passed**: as the protocol wants it.
- **non-strict**: allowed, if not as soon or as much as it could be. Groups 3 to 5: the connection is failed before the good message in front of
  the bad frame was answered. 6.4: text that is not UTF-8 is found when its message is whole, not at its first wrong byte. 7.7: a close with a code
  from 3000 to 3999 is answered without a code (the suite itself lets this pass).
- **informational**: the protocol leaves it open.
- A connection that breaks the protocol is dropped without a close frame, which the protocol allows; the peer sees 1006. A close frame that is
  wrong itself is answered by one without a code.

What the suite does not ask, and \`test/channel/frames/control-frames.test.ts\` does:

- **Frames without the mask bit** should end the connection (RFC 6455, 5.1). The library never looks at the bit and takes four bytes for the masking key
  in any case. A frame that really is unmasked therefore arrives as other bytes than were sent, which are no frame of the protocol, and the session
  ends. A frame that carries a key and only lacks the bit arrives as it was meant. The library tells nobody which of the two it was, so the gateway
  cannot refuse the second. Masks protect proxies from browsers; an agent gains nothing by leaving out the bit.
- **Pings and pongs** take a token of the bucket that all frames take (20 a second, bursts of 60). The library answers a ping before the gateway hears of
  it. Whoever goes on is closed with 4029 and the seconds to wait. Neither is a sign of life of the agent.
- **Empty fragments** of a message that never ends are neither counted nor told of. They are no sign of life either: silence ends the session.

Not applicable:

${NOT_APPLICABLE.map(([group, , count, why]) => `- group ${group}, ${count} cases: ${why}`).join("\n")}

## Case by case

${table(
  ["Case", "What", "Verdict"],
  cases.map(({ id, title, verdict }) => [id, title, verdict]),
)}
`;
