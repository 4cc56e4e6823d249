// The tenant: its name, its settings, load tests, and its end.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { useMay, useMe } from "../../api/session.ts";
import { Columns } from "../../ui/columns.tsx";
import { Loaded, Page, Panel } from "../../ui/parts.tsx";
import { Deletion } from "./deletion.tsx";
import { LoadTestPanel } from "./load-test.tsx";
import { TenantPanel } from "./tenant.tsx";
import { TenantSettingsPanel } from "./tenant-settings.tsx";
import { text } from "./text.ts";

const LOAD_TESTS = "loadTests";

export const SettingsScreen = () => {
  const may = useMay();
  // A person with a permission has a tenant.
  const { tenantId, features } = useMe();
  const tenant = useQuery(api.tenants.get.queryOptions({ tenantId: tenantId ?? "" }));
  return (
    <Page title={text.title}>
      <Loaded read={tenant} rows={6}>
        {(stored) => (
          <>
            {stored.status === "active" ? null : <p role="status">{text.readOnly}</p>}
            <Columns>
              <TenantPanel of={stored} />
              {may("tenant:update") ? <TenantSettingsPanel tenantId={stored.tenantId} isOpen={stored.status === "active"} /> : null}
              {may("tenant:update") && features.includes(LOAD_TESTS) && stored.status === "active" ? <LoadTestPanel tenantId={stored.tenantId} /> : null}
              <Panel title={text.metrics}>
                <p className="muted">{text.metricsNote}</p>
              </Panel>
              {may("tenant:delete") ? <Deletion of={stored} /> : null}
            </Columns>
          </>
        )}
      </Loaded>
    </Page>
  );
};
