// One delivery: its request, and each attempt with the receiver's answer.
import type { Webhook, WebhookDeliveryDetail } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Failure } from "../../ui/failure.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, duration, exactTime } from "../../ui/time.tsx";
import { NamedValue, parsed } from "../../ui/value.tsx";
import { useRemains } from "./remains.ts";
import { text } from "./text.ts";

type Attempt = WebhookDeliveryDetail["attempts"][number];

const OPEN_MS = 2_000;

const OneAttempt = ({ of, open }: { readonly of: Attempt; readonly open: boolean }) => {
  const { number, trigger, startedAt, durationMs, statusCode, error, responseHeaders, responseBody, ip } = of;
  return (
    <details open={open}>
      <summary>
        <Status status={error === null ? "succeeded" : "failed"} word={text.attempt(number, trigger)} />
      </summary>
      <div className="stack">
        <Facts
          of={{
            Began: exactTime(startedAt),
            Took: duration(durationMs),
            Answer: statusCode,
            Error:
              error === null ? null : (
                <>
                  <code>{error.code}</code> {error.message}
                </>
              ),
            Address: ip,
          }}
        />
        {responseBody === "" ? null : <NamedValue label={text.answerBody(number)} value={parsed(responseBody)} />}
        {Object.keys(responseHeaders).length === 0 ? null : <NamedValue label={text.answerHeaders(number)} value={responseHeaders} />}
      </div>
    </details>
  );
};

const EventLink = ({ eventId, eventType }: { readonly eventId: string; readonly eventType: string }) =>
  // The log of events has no tests.
  useMay()("event:read") && eventType !== "webhook.test" ? (
    <Link to="/events" search={{ event: eventId }}>
      {eventId}
    </Link>
  ) : (
    <Copyable text={eventId} />
  );

const Shown = ({ of }: { readonly of: WebhookDeliveryDetail }) => {
  const { attempts, attemptCount, request, nextAttemptAt, completedAt } = of;
  const { number: last = 0 } = attempts.at(-1) ?? {};
  const before = Math.max(0, attemptCount - attempts.length);
  return (
    <>
      <Facts
        of={{
          State: <Status status={of.status} />,
          Event: <EventLink eventId={of.eventId} eventType={of.eventType} />,
          Subject: <span className="mono">{of.subjectId}</span>,
          Created: exactTime(of.createdAt),
          "Next attempt": nextAttemptAt === null ? null : <Ago at={nextAttemptAt} />,
          Ended: completedAt === null ? null : exactTime(completedAt),
        }}
      />
      {attempts.length === 0 ? <p className="muted">{text.noAttempt}</p> : null}
      {before > 0 ? <p className="muted">{text.notMade(before)}</p> : null}
      {attempts.map((attempt) => (
        <OneAttempt key={`${attempt.number} ${attempt.startedAt}`} of={attempt} open={attempt.number === last} />
      ))}
      <details>
        <summary>{text.request}</summary>
        <div className="stack">
          <p className="mono">
            {request.method} {request.url}
          </p>
          <NamedValue label={text.requestHeaders} value={request.headers} />
          <NamedValue label={text.requestBody} value={parsed(request.body)} />
        </div>
      </details>
    </>
  );
};

export interface DeliveryProps {
  readonly webhook: Webhook;
  readonly deliveryId: string;
  readonly onClose: () => void;
}

export const Delivery = ({ webhook: { webhookId, status }, deliveryId, onClose }: DeliveryProps) => {
  const read = useQuery({
    ...api.webhooks.getDelivery.queryOptions({ webhookId, deliveryId }),
    enabled: useRemains(),
    refetchInterval: ({ state }) => (state.data?.status === "pending" || state.data?.status === "retrying" ? OPEN_MS : false),
  });
  const redeliver = useMutation(api.webhooks.redeliver.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.webhooks.pathFilter()) }));
  const isOpen = read.data?.status === "pending";
  return (
    <Panel
      title={read.data?.eventType ?? text.delivery}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      <div className="row">
        <Copyable text={deliveryId} />
        {status === "disabled" || read.data === undefined ? null : (
          <button type="button" disabled={redeliver.isPending || isOpen} onClick={() => redeliver.mutate({ webhookId, deliveryId })}>
            {text.redeliver}
          </button>
        )}
      </div>
      {redeliver.error === null ? null : <Failure error={redeliver.error} />}
      <Loaded read={read} rows={8}>
        {(delivery) => <Shown of={delivery} />}
      </Loaded>
    </Panel>
  );
};
