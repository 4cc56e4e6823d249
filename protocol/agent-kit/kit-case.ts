// A case of the kit: what it tests, by the anchors of the documents, and how.
import type { Stage } from "./stage.ts";

export interface KitCase {
  /** Like WAIT-2. */
  readonly id: string;
  readonly title: string;
  /** The anchors whose sentences it judges. */
  readonly rules: readonly string[];
  /** Roughly how long it takes, in seconds; default 5. The longest begin first. */
  readonly seconds?: number;
  /** Environment of the agent in this case. */
  readonly env?: Readonly<Record<string, string>>;
  run(stage: Stage): Promise<void>;
}

export interface Suite {
  readonly name: string;
  /** What an agent that claims it can do. */
  readonly about: string;
  readonly cases: readonly KitCase[];
}
