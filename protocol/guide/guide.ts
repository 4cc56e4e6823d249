// What a reader of an operation gets beside its declaration: a paragraph and one real exchange.
import type { Contract } from "../index.ts";

export interface OperationGuide {
  /** Where the group's own `description` does not stand already. Markdown, for customers. */
  readonly description?: string;
  /** As the operation's input: fields of path, query and body together. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** As the operation's output; the envelope is put around it. None for 204. */
  readonly output?: unknown;
}

export type Guide<G extends keyof Contract> = { readonly [N in keyof Contract[G]["operations"]]?: OperationGuide };
