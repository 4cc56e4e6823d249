// The background jobs with their last runs, and the way to run one now.
import type { BackgroundJob } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Failure } from "../../ui/failure.tsx";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Empty, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago, duration } from "../../ui/time.tsx";
import { text } from "./text.ts";

/** Nodes report their runs every few seconds, without an event. */
const READ_EVERY_MS = 5_000;

const lastOf = ({ nodes }: BackgroundJob) => nodes.toSorted((a, b) => (a.startedAt < b.startedAt ? 1 : -1))[0];
const worstOf = ({ nodes }: BackgroundJob) => nodes.toSorted((a, b) => b.failures - a.failures)[0];

const State = ({ job }: { readonly job: BackgroundJob }) => {
  const worst = worstOf(job);
  if (worst === undefined) return <Status status="idle" word={text.jobs.never} />;
  if (worst.failures === 0) return <Status status="ok" word={text.jobs.ok} />;
  return (
    <span title={`${worst.nodeId}: ${worst.error ?? ""}`}>
      <Status status="failed" word={text.jobs.failing(worst.failures)} />
    </span>
  );
};

interface Runs {
  readonly run: (name: string) => void;
  /** The job that was asked last. */
  readonly asked: string | undefined;
  readonly isBusy: boolean;
}

const columnsOf = ({ run, asked, isBusy }: Runs): readonly Column<BackgroundJob>[] => [
  { title: text.jobs.name, width: "minmax(120px, 2fr)", phone: true, cell: ({ name }) => <span className="mono">{name}</span> },
  { title: text.jobs.state, width: "minmax(70px, 2fr)", phone: true, cell: (job) => <State job={job} /> },
  { title: text.jobs.every, width: "110px", cell: ({ everySeconds }) => duration(everySeconds * 1_000).replace(".0 ", " ") },
  { title: text.jobs.last, width: AGO_WIDTH, cell: (job) => <Ago at={lastOf(job)?.startedAt} /> },
  { title: text.jobs.took, width: "90px", cell: (job) => (lastOf(job) === undefined ? "" : duration(lastOf(job)?.durationMs ?? 0)) },
  {
    title: text.jobs.action,
    width: "90px",
    phone: true,
    cell: ({ name }) => (
      <button type="button" data-kind="plain" disabled={isBusy && asked === name} onClick={() => run(name)} aria-label={`${text.jobs.run}: ${name}`}>
        {asked === name ? text.jobs.asked : text.jobs.run}
      </button>
    ),
  },
];

export const JobList = () => {
  const read = useQuery({ ...api.admin.listJobs.queryOptions({}), refetchInterval: READ_EVERY_MS });
  const { mutate, variables, isPending, isSuccess, error } = useMutation(
    api.admin.runJob.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.admin.listJobs.pathFilter()) }),
  );
  const columns = columnsOf({ run: (name) => mutate({ name }), asked: isPending || isSuccess ? variables.name : undefined, isBusy: isPending });
  return (
    <>
      {error === null ? null : <Failure error={error} />}
      <Loaded read={read} rows={8}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>{text.jobs.none}</Empty>
          ) : (
            <Table label={text.tabs.jobs} columns={columns} count={items.length} row={(index) => items[index]} id={({ name }) => name} fill />
          )
        }
      </Loaded>
    </>
  );
};
