// The tenants of the person. The one that they choose is the one that the console shows.
import { useQuery } from "@tanstack/react-query";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { TENANT_STAYS, useSwitchTenant } from "../../parts/switch-tenant.ts";
import { Failure } from "../../ui/failure.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import css from "./account.module.css";
import { text } from "./text.ts";

export const Tenants = () => {
  const me = useMe();
  const tenants = useQuery(api.account.tenants.queryOptions({}));
  const { choose, stays } = useSwitchTenant("/account");
  return (
    <Panel title={text.tenants}>
      {stays ? <p role="status">{TENANT_STAYS}</p> : null}
      {choose.error === null ? null : <Failure error={choose.error} />}
      <Loaded read={tenants}>
        {({ items }) => (
          <ul className={css["list"]}>
            {items.map(({ tenantId, name, slug, role, status }) => (
              <li key={tenantId}>
                <span className={css["what"]}>
                  <strong>{name}</strong> <span className="muted">{[slug, role, ...(status === "active" ? [] : [inWords(status)])].join(" · ")}</span>
                </span>
                {tenantId === me.tenantId ? (
                  <span className="muted">{text.here}</span>
                ) : (
                  <button type="button" disabled={choose.isPending} aria-label={text.switchTo(name)} onClick={() => choose.mutate({ tenantId })}>
                    {text.switch}
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
};
