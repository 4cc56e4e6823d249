// The guide to an operation: a paragraph and one example request and response.
import type { Contract } from "../index.ts";

export interface OperationGuide {
  /** Markdown, for customers. Used if the operation itself has no `description`. */
  readonly description?: string;
  /** Example input: fields of path, query and body together. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** Example output, without the envelope. None for 204. */
  readonly output?: unknown;
}

export type Guide<G extends keyof Contract> = { readonly [N in keyof Contract[G]["operations"]]?: OperationGuide };
