// The addresses of restic's REST protocol: which repository, and which of its files. What is not named here does not exist.

/** The folders of a repository. The files in them never change, and their name is the SHA-256 of their bytes. */
export const FILE_TYPES = ["data", "keys", "locks", "snapshots", "index"] as const;
export type FileType = (typeof FILE_TYPES)[number];

export type RepositoryAddress =
  | { readonly repository: string; readonly kind: "repository" }
  | { readonly repository: string; readonly kind: "config" }
  | { readonly repository: string; readonly kind: "list"; readonly type: FileType }
  | { readonly repository: string; readonly kind: "file"; readonly type: FileType; readonly name: string };

const REPOSITORY = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;
const NAME = /^[0-9a-f]{64}$/;
const MAX_LENGTH = 512;

const addressOf = (repository: string, [first = "", second, ...more]: readonly string[]): RepositoryAddress | null => {
  if (more.length > 0) return null;
  if (first === "" && second === undefined) return { repository, kind: "repository" };
  if (first === "config" && second === undefined) return { repository, kind: "config" };
  const type = FILE_TYPES.find((each) => each === first);
  if (type === undefined) return null;
  if (second === undefined || second === "") return { repository, kind: "list", type };
  return NAME.test(second) ? { repository, kind: "file", type, name: second } : null;
};

/** Reads the path of a request, without its query, below this prefix. Nothing in it is decoded. */
export const readAddress = (path: string, prefix: string): RepositoryAddress | null => {
  if (path.length > MAX_LENGTH || !path.startsWith(prefix)) return null;
  const [repository = "", ...rest] = path.slice(prefix.length).split("/");
  return REPOSITORY.test(repository) ? addressOf(repository, rest) : null;
};

/** The largest file of a type. restic's packs have at most 128 MiB and its other files seldom more than 8. */
export const MAX_BYTES: Readonly<Record<FileType | "config", number>> = {
  config: 65_536,
  keys: 65_536,
  locks: 65_536,
  snapshots: 67_108_864,
  index: 268_435_456,
  data: 268_435_456,
};
