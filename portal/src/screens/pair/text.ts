// The sentences of pairing.
import type { InstallCommand } from "@mooring/client";
import { inWords } from "../../../../protocol/kit/words.ts";
import { counted, numbers } from "../../ui/count.ts";
import type { TokenTerms } from "./token-terms.ts";

/** What became of a code, and what to do. */
const CODES: ReadonlyMap<string, string> = new Map([
  ["PAIRING_CODE_NOT_FOUND", "No machine waits with this code. Compare it with the machine's screen, letter by letter, or request a new code on the machine."],
  ["PAIRING_CODE_EXPIRED", "This code is more than 15 minutes old. Request a new one on the machine."],
  ["PAIRING_ALREADY_ACTIVATED", "This code has been used: the machine is paired. If it is not among your devices, request a new code on the machine."],
  ["PAIRING_REJECTED", "Somebody of your tenant rejected the machine with this code. If that was a mistake, request a new code on the machine."],
]);

/** The steps in their order; an installer may report one of its own. */
const STEPS: Readonly<Record<string, string>> = {
  approved: "approved",
  preflight_check: "check",
  docker_install: "Docker",
  downloading: "download",
  installing: "agent",
  enrolling: "enrollment",
  online: "online",
};

export type Kind = keyof InstallCommand["commands"];
export const KINDS: readonly (readonly [kind: Kind | "macos", word: string])[] = [
  ["linux", "Linux"],
  ["docker", "Docker"],
  ["macos", "macOS"],
  ["ownAgent", "Your own agent"],
];
const LIVES = [
  ["3600", "1 hour"],
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
] as const;
const INSTALLS = [
  "It finds the package for the machine at this gateway, and compares its SHA-256.",
  "It unpacks the agent to /opt/mooring-agent and makes a user for it; without root, into your home.",
  "It pairs the machine, starts the service and waits until the device is online.",
  "Run again, it upgrades the agent and changes nothing else.",
];
const termsOf = ({ maxUses, expiresInSeconds, tags, approval }: Pick<TokenTerms, "maxUses" | "expiresInSeconds" | "tags" | "approval">): string => {
  const machines = maxUses === null ? "any number of machines" : counted(maxUses, "machine");
  const life = LIVES.find(([seconds]) => seconds === String(expiresInSeconds))?.[1] ?? "";
  const asks = approval === "required" ? ", each after your approval" : "";
  return `It pairs ${machines} within ${life}${asks}, with ${tags.length === 0 ? "no tags." : "the tags"}`;
};

export const text = {
  title: "Pair a device",
  byCommand: "Run one command on the machine",
  kind: "Kind of machine",
  needs: {
    linux: "needs curl; root, or a user with sudo",
    docker: "needs curl and Docker; root, or a user with sudo",
    macos: "There is no package of the agent for a Mac. Use a Linux machine or a virtual one, or write an agent of your own: the protocol is open.",
    ownAgent: "what your agent pairs with",
  } satisfies Readonly<Record<Kind | "macos", string>>,
  whatIsCopied: { linux: "the command", docker: "the command", ownAgent: "the variables" } satisfies Readonly<Record<Kind, string>>,
  whatItDoes: "What does the command do?",
  doing: {
    linux: [...INSTALLS, "Apps run as containers where Docker answers, else as processes."],
    docker: [...INSTALLS, "The agent runs beside Docker, as a service, and its apps as containers."],
  },
  protocol: "The calls of pairing, in the API's documentation",
  toCome: "Copy makes a token.",
  isMade: "The token is made, and nobody can show it again.",
  spent: "The token of the last command is used up or has ended; Copy makes another.",
  terms: termsOf,
  change: "Change",
  termsTitle: "The token of the command",
  useTerms: "Use these",
  showsCode: "The machine then shows a code. Type it below, or let somebody do so who may approve machines.",
  nameOfCommand: (at: string) => `One command, ${at}`,

  byCode: "Or type the code that the machine shows",
  code: "Pairing code",
  codeHint: "Eight letters. Paste works, case and dash do not matter. You compare six digits before anything is paired.",
  notACode: "A code has eight letters and no vowels, such as KRTB-XWQD. Compare it with the machine's screen.",
  failed: (code: string | undefined) => CODES.get(code ?? ""),
  expiredHere: CODES.get("PAIRING_CODE_EXPIRED") ?? "",
  noFeature: "This installation does not let people approve machines in the browser.",

  waiting: "Waiting for machines",
  listening: "listening",
  notListening: "not live",
  showUp: "machines show up here at once",
  nobodyWaits: "No machine waits for you. One shows up when it runs the command, or when you type its code.",
  moreWait: (count: number) => `${numbers.format(count)} more wait.`,
  compare: "compare",
  from: (address: string) => `from ${address}`,
  digits: "Does the machine show these digits?",
  noDigits: "This machine shows no digits. Compare its fingerprint instead.",
  unnamed: "a machine without a name",
  more: "Name, tags and fingerprint",
  name: "Name",
  nameHint: (own: string | undefined) => (own === undefined ? "" : `If you leave it empty: ${own}`),
  besideToken: "Beside the tags of its token.",
  approve: "Yes, approve",
  reject: "Reject",
  rejectTitle: "Reject this machine?",
  rejectText: "It gets no identity, and its code is worth nothing from now on. The machine is told so.",
  rejected: "The machine is rejected. Its code is worth nothing now.",
  replaces: "This machine has the fingerprint of a device that you already have:",
  replaceCheck: "Give that device's identity to this machine. The agent that uses it now is locked out.",

  installs: "installs",
  paired: "Paired",
  order: Object.keys(STEPS),
  steps: (step: string) => STEPS[step] ?? inWords(step),
  isOnline: (name: string) => `${name} is online.`,
  notYet: (name: string) => `${name} has not connected yet.`,
  hasArrived: (name: string) => `${name} has arrived.`,
  waits: (name: string) => `${name} is approved. It fetches its identity within a few seconds and then comes online.`,
  installFailed: "The installation failed.",

  after: "After that",
  afterwards: ["The device appears in Devices, by itself.", "Its agent takes the releases of your gateway.", "You install the first app."],

  tokens: "Or pair many at once",
  tokensHint: "One token for a number of machines and a time, with tags. Take it as a shell line, for cloud-init or as an Ansible task.",
  createMany: "Create a token for many",
  create: "Create token",
  createTitle: "Create an enrollment token",
  tokenName: "Name",
  life: "Valid for",
  lives: LIVES,
  maxUses: "Machines",
  maxUsesHint: "How many machines it may pair. Empty: any number until it expires.",
  tags: "The devices get these tags.",
  approval: "A person approves each machine",
  approvalHint: "The machine waits, here, until somebody has compared its digits.",
  needsApproval: "a person approves each machine",
  allowRepair: "Also pair machines that are devices already",
  allowRepairHint: "Whoever holds the token can then lock out their agents.",
  once: "Copy it now: nobody can show the token again.",
  format: "Form",
  theText: (form: string) => (form === "Shell" ? "the command" : `the ${form} text`),
  ansibleTask: "Connect the machine to Mooring",
  copy: "Copy",
  copied: "Copied.",
  selectIt: "Your browser lets no page copy here. Select the text and copy it.",
  haveCopied: "I have copied it",
  none: "No token yet.",
  uses: (uses: number, maxUses: number | null) =>
    maxUses === null ? `${numbers.format(uses)}, no limit` : `${numbers.format(uses)} of ${numbers.format(maxUses)}`,
  usedUp: "used up",
  revoke: "Revoke",
  revokeNamed: (name: string) => `Revoke ${name}`,
  revokeTitle: "Revoke this token?",
  revokeText: "It pairs no machine from now on. Devices that it has paired stay, and machines that wait with it for approval wait no more.",
} as const;
