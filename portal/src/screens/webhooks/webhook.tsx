// One webhook: how it is, what was delivered, and what to do with it.
import type { Webhook } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Copyable, Facts, Loaded, Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { WebhookActions } from "./actions.tsx";
import { Deliveries } from "./deliveries.tsx";
import { useRemains } from "./remains.ts";
import { stateWord, text } from "./text.ts";

const route = getRouteApi("/webhooks/$webhookId");

const Known = ({ of }: { readonly of: Webhook }) => {
  const { stats, headerNames, description, events } = of;
  return (
    <Facts
      of={{
        [text.status]: <Status status={of.status} word={stateWord(of)} />,
        [text.description]: description,
        [text.events]: events.join(", "),
        [text.format]: text.formats.find(([format]) => format === of.format)?.[1],
        [text.secret]: <span className="mono">…{of.secretHint}</span>,
        [text.headers]: headerNames.join(", "),
        [text.rate]: text.perSecond(of.maxPerSecond),
        [text.day]: text.attempts(stats.success24h, stats.failure24h),
        [text.lastSuccess]: <Ago at={stats.lastSuccessAt} />,
        [text.lastFailure]: stats.lastFailureAt === null ? null : <Ago at={stats.lastFailureAt} />,
        [text.failingSince]: stats.failingSince === null ? null : <Ago at={stats.failingSince} />,
        [text.disabledAt]: of.disabledAt === null ? null : <Ago at={of.disabledAt} />,
      }}
    />
  );
};

export const WebhookScreen = () => {
  const { webhookId } = route.useParams();
  const may = useMay();
  const read = useQuery({ ...api.webhooks.get.queryOptions({ webhookId }), enabled: useRemains() });
  return (
    <Page title={read.data?.url ?? text.one} beside={<Copyable text={webhookId} />} fill>
      <Loaded read={read} rows={8}>
        {(webhook) => (
          <>
            <Known of={webhook} />
            <div className="row">
              <WebhookActions of={webhook} />
              {may("audit:read") ? (
                <Link to="/audit" search={{ resource: webhookId }}>
                  {text.history}
                </Link>
              ) : null}
            </div>
            {may("webhook:deliver") ? <Deliveries of={webhook} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  );
};
