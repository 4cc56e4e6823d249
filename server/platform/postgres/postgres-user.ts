// Chooses the operating-system user that runs the embedded PostgreSQL, which refuses root, the usual user in a container.
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { runSystemProgram } from "./system-programs.ts";

const NAME = "postgres";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** How to start a program as the database user. */
export interface PostgresLaunch {
  /** Owner of the files; undefined: the user that runs the gateway. */
  readonly owner: Owner | undefined;
  /** A command before the program that changes the user; empty when spawn changes it. */
  readonly prefix: readonly string[];
}

/** Any user but root runs the server itself. Root takes the cluster's owner, or else the system user `postgres`, which it creates if necessary. */
export const findLaunch = async ({ clusterDir, program }: { readonly clusterDir: string; readonly program: string }): Promise<PostgresLaunch> => {
  if (process.getuid?.() !== 0) return { prefix: [], owner: undefined };
  const user = (await ownerOf(clusterDir)) ?? (await lookUp()) ?? (await create());
  const barrier = (await closedFolder(dirname(clusterDir), user)) ?? (await closedFolder(program, user));
  if (barrier === undefined) return { prefix: [], owner: user };
  const prefix = readingThroughFolders(user);
  const [command = "", ...words] = [...prefix, program, "--version"];
  await runSystemProgram(command, words).catch((cause: unknown) => {
    throw new Error(
      `The embedded PostgreSQL cannot run as root, and the user "${NAME}" may not enter the folder ${barrier}. ` +
        `Open it (chmod o+x ${barrier}), or move DATA_DIR and the checkout to a folder that other users may enter, or run as an ordinary user, or set DATABASE_URL.`,
      { cause },
    );
  });
  return { prefix, owner: user };
};

// For a closed parent such as /root or a fresh mktemp folder: the server gets the one capability to pass folders, and nothing else of root's.
const readingThroughFolders = ({ uid, gid }: Owner): string[] => [
  "setpriv",
  `--reuid=${uid}`,
  `--regid=${gid}`,
  "--clear-groups",
  "--inh-caps=+dac_read_search",
  "--ambient-caps=+dac_read_search",
  "--",
];

const ownerOf = async (folder: string): Promise<Owner | undefined> => {
  const found = await stat(folder).catch(() => undefined);
  return found === undefined || found.uid === 0 ? undefined : { uid: found.uid, gid: found.gid };
};

const lookUp = async (): Promise<Owner | undefined> => {
  const number = async (flag: string): Promise<number> => Number.parseInt(await runSystemProgram("id", [flag, NAME]), 10);
  return number("-u").then(
    async (uid) => ({ uid, gid: await number("-g") }),
    () => undefined,
  );
};

const create = async (): Promise<Owner> => {
  const words = ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", NAME];
  const made = await runSystemProgram("useradd", words).then(lookUp, () => undefined);
  if (made !== undefined) return made;
  throw new Error(
    `The embedded PostgreSQL cannot run as root and no user "${NAME}" could be created. Create one (useradd --system ${NAME}), run as an ordinary user, or set DATABASE_URL.`,
  );
};

// The first folder on the way to `path` that the user may not enter.
const closedFolder = async (path: string, user: Owner): Promise<string | undefined> => {
  for (let folder = path, last = ""; folder !== last; last = folder, folder = dirname(folder)) {
    const found = await stat(folder).catch(() => undefined);
    if (found === undefined) continue;
    const needed = found.uid === user.uid ? 0o100 : found.gid === user.gid ? 0o010 : 0o001;
    if ((found.mode & needed) === 0) return folder;
  }
  return undefined;
};
