// Every error code of PostgreSQL, from the list that its build is generated from and that comes with its programs.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { postgresBinaries } from "../../server/platform/postgres/postgres-binaries.ts";

const { postgres } = await postgresBinaries();
const LIST = readFileSync(join(postgres, "../../share/postgresql/errcodes.txt"), "utf8");

/** Without the codes of success and of warnings. */
export const SQL_STATES: readonly string[] = [...new Set([...LIST.matchAll(/^([0-9A-Z]{5})\s+E\s/gm)].map(([, state = ""]) => state))];
