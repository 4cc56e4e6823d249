// One API key: what it may do, from where, until when, and when it was used last.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { selectorText } from "../../parts/selector-field.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, exactTime } from "../../ui/time.tsx";
import { KeyActions } from "./actions.tsx";
import { text } from "./text.ts";

export const Key = ({ keyId, onClose }: { readonly keyId: string; readonly onClose: () => void }) => {
  const may = useMay();
  const read = useQuery(api.apiKeys.get.queryOptions({ keyId }));
  return (
    <Panel
      title={read.data?.name ?? "Key"}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      <Loaded read={read} rows={8}>
        {(key) => (
          <>
            <Facts
              of={{
                State: <Status status={key.status} />,
                Id: <Copyable text={key.keyId} />,
                Key: (
                  <span className="mono">
                    {key.prefix}…{key.last4}
                  </span>
                ),
                Role: key.role,
                Devices: selectorText(key.selector),
                "Allowed addresses": key.ipAllowlist.length === 0 ? text.anywhere : key.ipAllowlist.join(", "),
                Expires: key.expiresAt === null ? text.never : exactTime(key.expiresAt),
                "Last use": key.lastUsedAt === null ? text.neverUsed : <Ago at={key.lastUsedAt} />,
                "Last address": key.lastUsedIp,
                Created: exactTime(key.createdAt),
                "Created by": key.actor.name ?? key.actor.id,
              }}
            />
            <div>
              <div className="muted">{text.scopesField}</div>
              {key.scopes.length === 0 ? text.allScopes : key.scopes.join(", ")}
            </div>
            {may("api_key:write") && (key.status === "active" || key.status === "expiring") ? <KeyActions of={key} /> : null}
            {may("audit:read") ? (
              <Link to="/audit" search={{ resource: key.keyId }}>
                What was done to it
              </Link>
            ) : null}
          </>
        )}
      </Loaded>
    </Panel>
  );
};
