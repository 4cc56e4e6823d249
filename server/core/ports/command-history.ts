// What happened to a command, as another feature tells of it.
export interface CommandHistory {
  readonly command: {
    readonly commandId: string;
    readonly type: string;
    readonly status: string;
    readonly ackStatus: string | null;
    readonly channel: string | null;
    readonly failureCode: string | null;
  };
  /** Oldest first. */
  readonly steps: readonly { readonly at: string; readonly from: string | null; readonly to: string; readonly attempt: number; readonly code: string | null }[];
}
