// The tenants of the person. The one that they choose is the one that the console shows.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Failure } from "../../ui/failure.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { inWords } from "../../ui/words.ts";
import css from "./account.module.css";
import { text } from "./text.ts";

const SWITCHED = "mooring.switched";

export const Tenants = () => {
  const me = useMe();
  const tenants = useQuery(api.account.tenants.queryOptions({}));
  const [wanted] = useState(() => sessionStorage.getItem(SWITCHED));
  useEffect(() => sessionStorage.removeItem(SWITCHED), []);
  const choose = useMutation(
    api.account.switchTenant.mutationOptions({
      onSuccess: ({ tenantId }) => {
        sessionStorage.setItem(SWITCHED, tenantId);
        // Nothing that was read of the other tenant stays.
        location.reload();
      },
    }),
  );
  return (
    <Panel title={text.tenants}>
      {wanted !== null && wanted !== me.tenantId ? <p role="status">{text.stays}</p> : null}
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
