// What can be done with several apps at once: one bulk operation, which goes on when the page is closed and keeps a result for each app.
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { mooring } from "../../api/client.ts";
import { idsFromStart } from "../../api/list-start.ts";
import { useMay } from "../../api/session.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { BulkBar } from "../../ui/list/bulk-bar.tsx";
import type { Selection } from "../../ui/list/selection.ts";
import { text } from "./text.ts";

type Query = Parameters<typeof mooring.apps.list.query>[0];
type Creation = Parameters<typeof mooring.bulkOperations.create.mutate>[0];
type AppIds = NonNullable<Creation["target"]["appIds"]>;

/** One request's ids. */
const MAX_IDS = 10_000;
const PAGE = 500;

interface AppBulkProps {
  readonly selection: Selection;
  readonly total: number;
  readonly query: Query;
}

/** The ids of the list are those of apps. */
const idsOf = async ({ all, ids }: Selection, query: Query): Promise<AppIds> => {
  if (!all) return [...ids] as AppIds; // as: see above
  const read = (cursor: string) => mooring.apps.list.query({ ...query, sort: "createdAt", cursor, pageSize: PAGE });
  return (await idsFromStart(read, { idOf: ({ appId }) => appId, but: ids, most: MAX_IDS })) as AppIds; // as: see above
};

const VERBS = ["restart", "start", "stop", "update", "remove"] as const;
type Verb = (typeof VERBS)[number];

const useAppJob = ({ selection, query }: AppBulkProps) => {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: async ({ verb, keepVolumes }: { readonly verb: Verb; readonly keepVolumes: boolean }) => {
      const params = verb === "update" ? { upgrade: true } : verb === "remove" ? { keepVolumes } : {};
      return mooring.bulkOperations.create.mutate({ operation: `app.${verb}`, params, target: { appIds: await idsOf(selection, query) } });
    },
    onSuccess: async ({ operationId }) => {
      await navigate({ to: "/bulk/$operationId", params: { operationId } });
    },
  });
};

export const AppBulk = (props: AppBulkProps) => {
  const { selection, total } = props;
  const may = useMay();
  const job = useAppJob(props);
  const [verb, setVerb] = useState<Verb | null>(null);
  const [keepVolumes, setKeeps] = useState(false);
  const count = selection.count(total);
  const ask = (next: Verb | null): void => {
    job.reset();
    setVerb(next);
  };
  return (
    <>
      <BulkBar selection={selection} total={total} progress={null}>
        {VERBS.map((each) =>
          may(each === "remove" ? "app:delete" : "app:update") ? (
            <button key={each} type="button" onClick={() => ask(each)}>
              {text.verbs[each]}…
            </button>
          ) : null,
        )}
      </BulkBar>
      {verb === null ? null : (
        <Confirm
          title={text.ask(verb, count)}
          open
          onClose={() => ask(null)}
          submit={text.verbs[verb]}
          action={job}
          onConfirm={() => job.mutate({ verb, keepVolumes })}
          {...(verb === "remove" ? { typed: String(count) } : {})}
        >
          <p>{text.outcomes[verb]}</p>
          {verb === "remove" ? (
            <Check name="keepVolumes" label={text.keepVolumes} checked={keepVolumes} onChange={({ target }) => setKeeps(target.checked)} />
          ) : null}
        </Confirm>
      )}
    </>
  );
};
