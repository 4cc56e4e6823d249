// How a device's agent reaches a restic repository while it carries out one command.
import { z } from "zod";
import { BackupDestinationId } from "../../kit/ids.ts";

export const DESTINATION_KINDS = ["local", "gateway", "s3", "rest"] as const;
export const DestinationKind = z
  .enum(DESTINATION_KINDS)
  .describe("`local`: a folder of the device. `gateway`: this installation. `s3`: a bucket. `rest`: a server that speaks restic's REST protocol.");
export type DestinationKind = z.output<typeof DestinationKind>;

/** What a command may do: add and read; delete snapshots too; and rewrite packs too. */
export const REPOSITORY_RIGHTS = ["read", "append", "forget", "prune"] as const;
export const RepositoryRight = z
  .enum(REPOSITORY_RIGHTS)
  .describe(
    "`read`: nothing is written but locks. `append`: adds, deletes nothing but locks. `forget`: deletes snapshots, too. `prune`: deletes everything, too.",
  );
export type RepositoryRight = z.output<typeof RepositoryRight>;

export const RepositoryAccess = z.object({
  destinationId: BackupDestinationId,
  kind: DestinationKind,
  right: RepositoryRight,
  repository: z.string().describe("The value of RESTIC_REPOSITORY. Of a `local` destination a folder: a relative one lies in the agent's own folder."),
  password: z.string().describe("The value of RESTIC_PASSWORD."),
  environment: z
    .record(z.string(), z.string())
    .describe("More variables for restic, such as the keys of a bucket. They never belong into arguments, files or logs."),
  mayInitialize: z
    .boolean()
    .describe(
      "Whether the agent may make the repository if there is none. `false`: there was one, so none at its place means that its backups are lost. Fail with REPOSITORY_MISSING then.",
    ),
  expiresAt: z.iso.datetime().describe("The gateway's own repository refuses the access from then on."),
});
export type RepositoryAccess = z.output<typeof RepositoryAccess>;
