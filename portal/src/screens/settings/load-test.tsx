// A load test of the installation: start it, watch it, cancel it, and read what it measured.
import type { LoadTest } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Field, Form, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { text } from "./text.ts";

const WATCH_MS = 1_000;
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.tenants.loadTest.pathFilter());

const Results = ({ of: { results } }: { readonly of: LoadTest }) => {
  if (results === null) return null;
  const { outcome, reason, progress, requests, failed, requestsPerSecond, latencyMs, errors } = results;
  return (
    <>
      {outcome === "running" ? <progress aria-label={text.load} value={progress} max={1} /> : null}
      <Facts
        of={{
          State: <Status status={outcome === "finished" ? "completed" : outcome} word={text.outcomes[outcome]} />,
          Reason: reason,
          Calls: text.requests(requests),
          Failed: text.requests(failed),
          Rate: text.rate(requestsPerSecond),
          Median: text.ms(latencyMs.p50),
          "95 %": text.ms(latencyMs.p95),
          "99 %": text.ms(latencyMs.p99),
          Slowest: text.ms(latencyMs.max),
          ...errors,
        }}
      />
    </>
  );
};

const Start = ({ of: { tenantId, configuration } }: { readonly of: LoadTest }) => {
  const start = useMutation(api.tenants.startLoadTest.mutationOptions({ onSuccess: readAgain }));
  const send = (fields: FormData): void => {
    const endpoints = String(fields.get("endpoints"))
      .split(/\s+/)
      .filter((line) => line !== "");
    start.mutate({ tenantId, duration: Number(fields.get("duration")), concurrency: Number(fields.get("concurrency")), endpoints });
  };
  return (
    <Form submit={text.start} busy={start.isPending} error={start.error} onSubmit={send}>
      <div className="row">
        <TextField label={text.duration} name="duration" type="number" required min={1} max={300} defaultValue={configuration.duration || 30} />
        <TextField label={text.concurrency} name="concurrency" type="number" required min={1} max={100} defaultValue={configuration.concurrency || 10} />
      </div>
      <Field label={text.endpoints}>
        {(id) => (
          <textarea
            id={id}
            name="endpoints"
            rows={2}
            required
            maxLength={20_000}
            defaultValue={configuration.endpoints.length === 0 ? "/v1/devices" : configuration.endpoints.join("\n")}
          />
        )}
      </Field>
    </Form>
  );
};

const Cancel = ({ tenantId }: { readonly tenantId: string }) => {
  const cancel = useMutation(api.tenants.cancelLoadTest.mutationOptions({ onSuccess: readAgain }));
  return (
    <>
      {cancel.error === null ? null : <Failure error={cancel.error} />}
      <div className="row">
        <button type="button" disabled={cancel.isPending || cancel.isSuccess} onClick={() => cancel.mutate({ tenantId })}>
          {text.cancel}
        </button>
        {cancel.isSuccess ? <span role="status">{text.canceling}</span> : null}
      </div>
    </>
  );
};

export const LoadTestPanel = ({ tenantId }: { readonly tenantId: string }) => {
  const test = useQuery({
    ...api.tenants.loadTest.queryOptions({ tenantId }),
    // Only the end of a test is an event.
    refetchInterval: ({ state }) => (state.data?.status === "running" ? WATCH_MS : false),
  });
  return (
    <Panel title={text.load}>
      <p className="muted">{text.loadNote}</p>
      <Loaded read={test}>
        {(latest) => (
          <>
            <Results of={latest} />
            {latest.status === "running" ? <Cancel tenantId={tenantId} /> : <Start key={latest.lastRun} of={latest} />}
          </>
        )}
      </Loaded>
    </Panel>
  );
};
