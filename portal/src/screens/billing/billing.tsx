// What the tenant has, uses and pays: its plan, its usage against the limits, the plans to choose, and the invoices.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { Meter } from "../../ui/figures.tsx";
import { Loaded, Page, Panel } from "../../ui/parts.tsx";
import css from "./billing.module.css";
import { Invoices } from "./invoices.tsx";
import { Plans } from "./plans.tsx";
import { Standing, Suspended } from "./standing.tsx";
import { resourceName, text } from "./text.ts";

const Usage = () => {
  const usage = useQuery(api.billing.usage.queryOptions({}));
  return (
    <Panel title={text.usage}>
      <Loaded read={usage} rows={4}>
        {({ used, limits }) => (
          <div className={css["meters"]}>
            {Object.entries(used).map(([resource, value]) => (
              <Meter key={resource} label={resourceName(resource)} value={value} limit={limits[resource] ?? null} />
            ))}
          </div>
        )}
      </Loaded>
    </Panel>
  );
};

/** Where nobody takes payments, plans cost nothing: only what is used counts. */
const Payments = () => {
  const billing = useQuery(api.billing.get.queryOptions({}));
  return (
    <Loaded read={billing} rows={4}>
      {(standing) => (
        <>
          <Standing of={standing} />
          <Usage />
          <Plans billing={standing.billing} />
          <Invoices />
        </>
      )}
    </Loaded>
  );
};

export const BillingScreen = () => {
  const info = useQuery({ ...api.general.info.queryOptions({}), staleTime: 600_000, refetchInterval: false });
  return (
    <Page title={info.data?.payments === "stripe" ? text.title : text.usageTitle}>
      <Loaded read={info} rows={4}>
        {({ payments }) =>
          payments === "none" ? (
            <>
              <Suspended />
              <Usage />
            </>
          ) : (
            <Payments />
          )
        }
      </Loaded>
    </Page>
  );
};
