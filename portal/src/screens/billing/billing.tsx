// What the tenant has, uses and pays: its plan, its usage against the limits, the plans to choose, and the invoices.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { Gauge } from "../../ui/charts/gauge.tsx";
import { Loaded, Page, Panel } from "../../ui/parts.tsx";
import css from "./billing.module.css";
import { Invoices } from "./invoices.tsx";
import { Plans } from "./plans.tsx";
import { Standing } from "./standing.tsx";
import { resourceName, text } from "./text.ts";

const Usage = () => {
  const usage = useQuery(api.billing.usage.queryOptions({}));
  return (
    <Panel title={text.usage}>
      <Loaded read={usage} rows={4}>
        {({ used, limits }) => (
          <div className={css["gauges"]}>
            {Object.entries(used).map(([resource, value]) => (
              <Gauge key={resource} label={resourceName(resource)} value={value} limit={limits[resource] ?? null} />
            ))}
          </div>
        )}
      </Loaded>
    </Panel>
  );
};

export const BillingScreen = () => {
  const billing = useQuery(api.billing.get.queryOptions({}));
  return (
    <Page title={text.title}>
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
    </Page>
  );
};
