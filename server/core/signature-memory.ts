// The memory of used signatures, as the gateway and the agent socket use it.
export interface SignatureMemory {
  /**
   * Returns the place of the first use, and stores this place if it is the first. Pass `kept`, a shorter text to store, where no second request can
   * have the same place.
   */
  bind(use: string, place: string, kept?: string): Promise<string>;
  /** The memory has every use of the last so many milliseconds, of this node or of all nodes. */
  readonly coversMs: number;
}
