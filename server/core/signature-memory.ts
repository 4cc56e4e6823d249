// What the gateway and the agent socket ask of the memory of used signatures.
export interface SignatureMemory {
  /**
   * Answers the place of first use, and remembers this one when there is none. Where no second request can be in the same place, later uses get
   * `kept` instead: the place itself would only take memory.
   */
  bind(use: string, place: string, kept?: string): Promise<string>;
  /** This node, or all nodes together, know every use of the last so many milliseconds. */
  readonly coversMs: number;
}
