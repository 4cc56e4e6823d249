// Who may come into a tunnel, how much of it, until when, and how it was used.
import type { Tunnel } from "@mooring/client";
import type { ReactNode } from "react";
import { bytesText } from "../../ui/bytes.ts";
import { numbers } from "../../ui/count.ts";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import { LIMITS, text } from "./text.ts";

const TunnelUse = ({ of: { requests, bytesIn, bytesOut, lastUsedAt } }: { readonly of: Tunnel["usage"] }) =>
  lastUsedAt === null ? (
    text.unused
  ) : (
    <>
      {text.used(requests)}, {bytesText(bytesIn + bytesOut)}, {text.lastUsed} <Ago at={lastUsedAt} />
    </>
  );

const shownLimits = (limits: Tunnel["limits"]): string =>
  LIMITS.flatMap((name) => {
    const most = limits[name];
    return most === null ? [] : [text.limits[name].shown(numbers.format(most))];
  }).join(", ");

export const TunnelEntrance = ({ tunnel, showToken }: { readonly tunnel: Tunnel; readonly showToken: ReactNode }) => {
  const { url, protocol, access, limits, expiresAt, usage } = tunnel;
  return (
    <Panel title={text.who} beside={showToken}>
      <Facts
        of={{
          [text.address]: <Copyable text={url} />,
          [text.access]: text.openTo(tunnel),
          [text.from]: access.allow.length === 0 ? text.anywhere : <span className="mono">{access.allow.join(", ")}</span>,
          [text.limited]: shownLimits(limits) || null,
          [text.expires]: expiresAt === null ? null : <Ago at={expiresAt} />,
          [text.usage]: <TunnelUse of={usage} />,
          [text.token]: protocol === "tcp" ? null : text.tokenEnds(access.tokenHint),
        }}
      />
    </Panel>
  );
};
