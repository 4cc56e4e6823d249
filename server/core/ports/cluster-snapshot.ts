// What a node knows of the others.

export interface NodeListeners {
  /** Each address on which the node listens, with its port. */
  readonly listeners: readonly string[];
}
