// Group 7: closing.
import { type Case, closes, fails, text, together, told } from "./case.ts";
import { closeFrame, type Frame, frame, OP } from "./frames.ts";

const HELLO = "Hello World!";
// A close frame that is wrong itself may also be answered without a code.
const PROTOCOL_ERROR = [1002, null];
const hello = frame(OP.text, HELLO);
const goodbye = closeFrame(1000);
// As large as a message may be here.
const LARGE = Buffer.alloc(262_144, "*");

const order: readonly Case[] = [
  closes(told("7.1.1", "Text, then close"), together(hello, goodbye), [1000], text(HELLO)),
  closes(told("7.1.2", "Close twice"), together(goodbye, goodbye), [1000]),
  closes(told("7.1.3", "Ping after close"), together(goodbye, frame(OP.ping)), [1000]),
  closes(told("7.1.4", "Text after close"), together(goodbye, hello), [1000]),
  closes(
    told("7.1.5", "Close between two fragments"),
    together(frame(OP.text, "fragment1", { fin: false }), goodbye, frame(OP.continuation, "fragment2")),
    [1000],
  ),
  {
    ...closes(
      told("7.1.6", "Text of 256 KiB, text, close, ping"),
      together(frame(OP.text, LARGE), hello, goodbye, frame(OP.ping)),
      [1000],
      text(LARGE),
      text(HELLO),
    ),
    informational: true,
  },
];

const LONGEST = "*".repeat(123);
const bodies: readonly Case[] = [
  closes(told("7.3.1", "Close without a code"), together(closeFrame(null)), [null, 1000]),
  fails(told("7.3.2", "Close with one byte"), together(frame(OP.close, "a")), PROTOCOL_ERROR),
  closes(told("7.3.3", "Close with a code"), together(goodbye), [1000]),
  closes(told("7.3.4", "Close with a code and a reason"), together(closeFrame(1000, "Hello World!")), [1000]),
  closes(told("7.3.5", "Close with a code and 123 bytes of reason"), together(closeFrame(1000, LONGEST)), [1000]),
  fails(told("7.3.6", "Close with a code and 124 bytes of reason"), together(closeFrame(1000, `${LONGEST}*`))),
  fails(told("7.5.1", "Close with a reason that is not UTF-8"), together(closeFrame(1000, Buffer.from("cebae1bdb9eda080656469746564", "hex"))), [
    ...PROTOCOL_ERROR,
    1007,
  ]),
];

const VALID = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] as const;
const INVALID = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999] as const;
const UNDEFINED = [5000, 65_535] as const;
const withCode = (code: number): Frame => closeFrame(code);

export const closeCases: readonly Case[] = [
  ...order,
  ...bodies,
  ...VALID.map((code, index) => closes(told(`7.7.${index + 1}`, `Close with ${code}`), together(withCode(code)), [1000, code])),
  ...INVALID.map((code, index) => fails(told(`7.9.${index + 1}`, `Close with ${code}, which is no code`), together(withCode(code)), PROTOCOL_ERROR)),
  ...UNDEFINED.map(
    (code, index): Case => ({
      ...told(`7.13.${index + 1}`, `Close with ${code}, of which nothing is said`),
      writes: together(withCode(code)),
      strict: [],
      ending: { by: "anyone" },
      informational: true,
    }),
  ),
];
