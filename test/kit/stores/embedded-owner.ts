// A process that opens the embedded database and stays alive, so that a test can kill it. Prints "pid url".
import { openEmbeddedPostgres } from "../../../server/platform/postgres/embedded-postgres.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";

const server = await openEmbeddedPostgres({ dataDir: process.argv[2] ?? "", log: silentLog });
process.stdout.write(`${server.pid()} ${server.url}\n`);
