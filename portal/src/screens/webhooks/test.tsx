// Sends a test to a webhook and shows the receiver's answer.
import type { Webhook, WebhookTest } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, queryClient } from "../../api/client.ts";
import { Dialog, Form, SelectField } from "../../ui/dialog.tsx";
import { Facts } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { duration } from "../../ui/time.tsx";
import { NamedValue, parsed } from "../../ui/value.tsx";
import { useEventTypes } from "./events-field.tsx";
import { text } from "./text.ts";

const Answer = ({ webhookId, of: { deliveryId, statusCode, durationMs, error, response } }: { readonly webhookId: string; readonly of: WebhookTest }) => (
  <section className="stack" aria-label={text.testTitle}>
    <p role="status">
      <Status status={error === null ? "succeeded" : "failed"} word={error === null ? text.testArrived : text.testFailed} />
    </p>
    <Facts
      of={{
        Answer: statusCode,
        Took: duration(durationMs),
        Error:
          error === null ? null : (
            <>
              <code>{error.code}</code> {error.message}
            </>
          ),
      }}
    />
    {response.body === "" ? null : <NamedValue label={text.answerBody(1)} value={parsed(response.body)} />}
    <Link to="/webhooks/$webhookId" params={{ webhookId }} search={{ delivery: deliveryId }}>
      {text.testShown}
    </Link>
  </section>
);

export const TestWebhook = ({ of: { webhookId }, onClose }: { readonly of: Webhook; readonly onClose: () => void }) => {
  const types = useEventTypes().data?.items ?? [];
  const test = useMutation(api.webhooks.test.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.webhooks.pathFilter()) }));
  const send = (fields: FormData): void => {
    const eventType = String(fields.get("type"));
    test.mutate({ webhookId, ...(eventType === "" ? {} : { eventType }) });
  };
  return (
    <Dialog title={text.test} open onClose={onClose}>
      <Form submit={text.test} busy={test.isPending} error={test.error} onCancel={onClose} back={text.done} onSubmit={send}>
        <SelectField label={text.testType} name="type" options={[["", text.testNone], ...types.map(({ name }) => [name, name] as const)]} />
      </Form>
      {test.data === undefined ? null : <Answer webhookId={webhookId} of={test.data} />}
    </Dialog>
  );
};
