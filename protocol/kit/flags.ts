// Feature flags: what operators may switch for the whole installation or for one tenant.
interface FlagDeclaration {
  readonly enabled: boolean;
  readonly summary: string;
}

/** With the values that hold until an operator decides otherwise. */
export const FLAGS = {
  loadTests: { enabled: true, summary: "Tenants may run load tests against this installation" },
  browserPairing: { enabled: true, summary: "A person may approve a pairing code in the browser" },
} as const satisfies Record<string, FlagDeclaration>;

export type Flag = keyof typeof FLAGS;
export const FLAG_NAMES = Object.keys(FLAGS) as readonly Flag[];
export const isFlag = (name: string): name is Flag => Object.hasOwn(FLAGS, name);
