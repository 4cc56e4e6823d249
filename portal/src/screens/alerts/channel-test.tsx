// Sends a test message to a channel, and shows what the other side answered.
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Failure } from "../../ui/failure.tsx";
import { Status } from "../../ui/status.tsx";
import { text } from "./text.ts";

export const Test = ({ channelId }: { readonly channelId: string }) => {
  const test = useMutation(api.alerts.testChannel.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.alerts.pathFilter()) }));
  const { data, error, isPending } = test;
  return (
    <div className="stack">
      <div className="row">
        <button type="button" disabled={isPending} onClick={() => test.mutate({ channelId })}>
          {isPending ? text.testing : text.test}
        </button>
        <span role="status">
          {data === undefined ? null : (
            <Status
              status={data.delivered ? "ok" : "failed"}
              word={data.delivered ? text.delivered(data.statusCode, data.durationMs) : text.notDelivered(data.statusCode, data.error)}
            />
          )}
        </span>
      </div>
      {error === null ? null : <Failure error={error} />}
    </div>
  );
};
