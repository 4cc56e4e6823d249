// The sentences of pairing.
import { inWords } from "../../../../protocol/kit/words.ts";
import { numbers } from "../../ui/count.ts";

/** What became of a code, and what to do. */
const CODES: ReadonlyMap<string, string> = new Map([
  ["PAIRING_CODE_NOT_FOUND", "No machine waits with this code. Compare it with the machine's screen, letter by letter, or request a new code on the machine."],
  ["PAIRING_CODE_EXPIRED", "This code is more than 15 minutes old. Request a new one on the machine."],
  ["PAIRING_ALREADY_ACTIVATED", "This code has been used: the machine is paired. If it is not among your devices, request a new code on the machine."],
  ["PAIRING_REJECTED", "Somebody of your tenant rejected the machine with this code. If that was a mistake, request a new code on the machine."],
]);

/** The steps that installers report today; one may report its own. */
const STEPS: Readonly<Record<string, string>> = {
  preflight_check: "Check of the machine",
  docker_install: "Docker",
  downloading: "Download",
  installing: "Installation",
  enrolling: "Enrollment",
};

export const text = {
  title: "Pair",
  byCode: "Pair a machine that shows a code",
  code: "Pairing code",
  codeHint: "Eight letters. Case, spaces and the dash do not matter.",
  lookUp: "Look up",
  notACode: "A code has eight letters and no vowels, such as KRTB-XWQD. Compare it with the machine's screen.",
  howTo: "Run this line on the machine. It installs the agent and shows a code; type it here, compare the machine, and approve it.",
  failed: (code: string | undefined) => CODES.get(code ?? ""),
  expiredHere: CODES.get("PAIRING_CODE_EXPIRED") ?? "",

  compare: "Is this the machine in front of you?",
  digits: "The machine shows these digits",
  noDigits: "This machine shows no digits. Compare its fingerprint instead.",
  unnamed: "a machine without a name",
  name: "Name",
  nameHint: (own: string | undefined) => (own === undefined ? "" : `If you leave it empty: ${own}`),
  approve: "Approve",
  reject: "Reject",
  rejectTitle: "Reject this machine?",
  rejectText: "It gets no identity, and its code is worth nothing from now on. The machine is told so.",
  rejected: "The machine is rejected. Its code is worth nothing now.",
  replaces: "This machine has the fingerprint of a device that you already have:",
  replaceCheck: "Give that device's identity to this machine. The agent that uses it now is locked out.",
  noFeature: "This installation does not let people approve machines in the browser.",
  another: "Pair another machine",

  installation: "Installation",
  approved: "Approved",
  steps: (step: string) => STEPS[step] ?? inWords(step),
  online: "Online",
  isOnline: (name: string) => `${name} is online.`,
  waits: (name: string) => `${name} is approved. It fetches its identity within a few seconds and then comes online.`,
  installFailed: "The installation failed.",
  openDevice: "Open the device",

  tokens: "Enrollment tokens",
  tokensHint: "For machines that nobody sits in front of: a command with a token pairs each machine on which it runs.",
  create: "Create token",
  createTitle: "Create an enrollment token",
  tokenName: "Name",
  life: "Valid for",
  lives: [
    ["3600", "1 hour"],
    ["86400", "1 day"],
    ["604800", "7 days"],
    ["2592000", "30 days"],
  ] as const,
  maxUses: "Machines",
  maxUsesHint: "How many machines it may pair. Empty: any number until it expires.",
  tags: "The devices get these tags.",
  allowRepair: "Also pair machines that are devices already",
  allowRepairHint: "Whoever holds the token can then lock out their agents.",
  run: "Run this line on each machine. It installs the agent, pairs the machine and waits until it is online:",
  thenAgent: "It needs Linux with curl. Without sudo it installs for your user only.",
  once: "Copy the command now: nobody can show the token again.",
  copy: "Copy",
  copied: "I have copied it",
  none: "No enrollment token. Create one to pair machines without a person.",
  uses: (uses: number, maxUses: number | null) =>
    maxUses === null ? `${numbers.format(uses)}, no limit` : `${numbers.format(uses)} of ${numbers.format(maxUses)}`,
  usedUp: "used up",
  revoke: "Revoke",
  revokeTitle: "Revoke this token?",
  revokeText: "It pairs no machine from now on. Devices that it has paired stay.",
  unknownToken: "Unknown, or not yours.",
} as const;
