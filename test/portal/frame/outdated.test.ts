// What the console has read stays true: an event during a read is not forgotten.
import { QueryClient, QueryObserver } from "@tanstack/query-core";
import { expect, test } from "vitest";
import { readAgain } from "../../../portal/src/api/outdated.ts";

const KEY = ["fleets"];

/** A query that is shown, whose first answer waits for `answer`; it is `old`, and each later one `new`. */
const shown = () => {
  const client = new QueryClient();
  const answer = { resolve: (_text: string): void => undefined, reject: (_error: Error): void => undefined };
  const first = new Promise<string>((resolve, reject) => Object.assign(answer, { resolve, reject }));
  let reads = 0;
  const observer = new QueryObserver(client, {
    queryKey: KEY,
    queryFn: () => {
      reads += 1;
      return reads === 1 ? first : "new";
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const settled = new Promise<unknown>((resolve) => {
    observer.subscribe(({ data, fetchStatus }) => {
      if (fetchStatus === "idle" && (data === "new" || !client.getQueryState(KEY)?.isInvalidated)) setImmediate(() => resolve(undefined));
    });
  });
  return { client, answer, settled, reads: () => reads, data: () => client.getQueryData(KEY) };
};

test("an answer that is older than an event is read once more", async () => {
  const { client, answer, settled, reads, data } = shown();
  readAgain(client, { queryKey: KEY });
  readAgain(client, { queryKey: KEY });
  answer.resolve("old");
  await settled;
  expect([data(), reads()]).toEqual(["new", 2]);
});

test("a read that fails after an event is begun once more, too", async () => {
  const { client, answer, settled, reads, data } = shown();
  readAgain(client, { queryKey: KEY });
  answer.reject(new Error("the connection broke"));
  await settled;
  expect([data(), reads()]).toEqual(["new", 2]);
});

test("nothing is read again without an event", async () => {
  const { client, answer, settled, reads, data } = shown();
  readAgain(client, { queryKey: ["devices"] });
  answer.resolve("old");
  await settled;
  expect([data(), reads()]).toEqual(["old", 1]);
});
