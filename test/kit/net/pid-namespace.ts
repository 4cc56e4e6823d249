// Starts a program as in another container: with process ids of its own, on the same disk and network.

const asOrdinaryUser = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];

/** The command and its words. What it starts ends with it. */
export const inAnotherContainer = (command: string, words: readonly string[]): readonly [string, readonly string[]] => [
  "unshare",
  [...asOrdinaryUser, "--pid", "--fork", "--kill-child", "--mount-proc", command, ...words],
];
