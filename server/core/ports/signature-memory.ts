// The memory of used signatures, as the gateway and the agent socket use it.
export interface SignatureMemory {
  /**
   * Returns the place of the first use, and stores this place if it is the first. Pass `kept`, a shorter text to store, where no second request can
   * have the same place.
   */
  bind(use: string, place: string, kept?: string): Promise<string>;
  /**
   * The same for a use that is good once, without waiting: `first` is what this node knows, and `shared` what all nodes together know, or null when
   * nobody else need be asked. From now on this node refuses every other use.
   */
  claim(use: string, place: string, kept: string): { readonly first: string; readonly shared: Promise<string> | null };
  /** The memory has every use of the last so many milliseconds, of this node or of all nodes. */
  readonly coversMs: number;
}
