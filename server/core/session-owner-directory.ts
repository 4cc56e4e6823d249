// Which node holds a device's socket. The answer is a hint: the epoch in the database decides.
export interface SessionOwnerDirectory {
  owner(deviceId: string): Promise<string | null>;
  /** Takes the entry or keeps it alive, unless a newer epoch stands there. */
  claim(deviceId: string, nodeId: string, epoch: number): Promise<void>;
  /** Removes the entry if it is still of this epoch. */
  release(deviceId: string, epoch: number): Promise<void>;
  /** Removes the entry if it still names this node, which nobody hears any more. */
  disown(deviceId: string, nodeId: string): Promise<void>;
  close(): Promise<void>;
}
