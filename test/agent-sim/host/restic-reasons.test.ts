// What restic says, in the words of the record. Digits that merely occur in a name or in an id are no status.
import { expect, test } from "vitest";
import { resticReasonOf } from "../../../agent-sim/host/backups/restic.ts";

test.each([
  ["Save(<data/6d0f>) returned error: server response unexpected: 507 Insufficient Storage (507)", "STORAGE_LIMIT"],
  ["Save(<data/6d0f>) failed: unexpected HTTP response (507): 507 Insufficient Storage", "STORAGE_LIMIT"],
  ["Fatal: unable to open config file: Stat: dial tcp 127.0.0.1:25071: connect: connection refused", "REPOSITORY_UNREACHABLE"],
  ["Fatal: create repository at s3:http://127.0.0.1:45071/backups/rep_507 failed: client.BucketExists: timeout", "REPOSITORY_UNREACHABLE"],
  ["Load(<data/1507a6>, 404, 0) returned error, retrying: connection refused", "REPOSITORY_UNREACHABLE"],
  ["Load(<data/15a6>, 583, 0) failed: unexpected HTTP response (404): 404 Not Found", "REPOSITORY_DAMAGED"],
  ["Fatal: unable to open config file: stat /r/config: no such file or directory\nIs there a repository at the following location?", "REPOSITORY_MISSING"],
  ["Fatal: unable to open config file: unexpected HTTP response (404): 404 Not Found", "REPOSITORY_MISSING"],
  ["Fatal: unable to open config file: <config/0000000000> does not exist", "REPOSITORY_MISSING"],
  ["Fatal: repository does not exist: unable to open config file: unexpected HTTP response (404): 404 Not Found", "REPOSITORY_MISSING"],
  ["Fatal: unable to open config file: Stat: dial tcp 127.0.0.1:40404: connect: connection refused", "REPOSITORY_UNREACHABLE"],
  ["Fatal: unable to open config file: Stat: The specified key does not exist.", "REPOSITORY_MISSING"],
  ["Fatal: unable to open config file: Stat: The specified bucket does not exist", "REPOSITORY_UNREACHABLE"],
  ["Load(<data/15a6>, 583, 0) returned error: open /r/data/15/15a6: no such file or directory", "REPOSITORY_DAMAGED"],
])("%s means %s", (line, reason) => {
  expect(resticReasonOf(line)).toBe(reason);
});
