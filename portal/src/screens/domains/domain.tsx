// One domain: what is missing until it serves visitors, its records, its certificate, and what it leads to.
import type { CustomDomainWithActors as CustomDomain } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { identifierInWords } from "../../../../protocol/kit/identifier-words.ts";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Beside, DetailPage, Pill } from "../../ui/detail-page.tsx";
import { Confirm, Dialog, Form, SelectField } from "../../ui/dialog.tsx";
import { MenuItem } from "../../ui/menu-items.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { toneOf } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { DomainCertificate } from "./certificate.tsx";
import { targetIn, useAppOptions } from "./domains.tsx";
import { DomainRecords } from "./records.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/network/domains/$domainId");
const FOLLOW_MS = 5_000;
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.domains.pathFilter());

interface DialogProps {
  readonly domain: CustomDomain;
  readonly onClose: () => void;
}

const Change = ({ domain: { domainId, target, version }, onClose }: DialogProps) => {
  const options = useAppOptions();
  const update = useMutation(
    api.domains.update.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readAgain();
      },
    }),
  );
  return (
    <Dialog title={text.change} open onClose={onClose}>
      <Form
        submit={text.save}
        busy={update.isPending}
        error={update.error}
        onCancel={onClose}
        onSubmit={(fields) => update.mutate({ domainId, version, target: targetIn(fields) })}
      >
        <SelectField key={options.length} label={text.leads} name="target" defaultValue={target?.kind === "app" ? target.id : ""} options={options} />
      </Form>
    </Dialog>
  );
};

const Remove = ({ domain: { domainId, displayName }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.domains.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/network/domains" });
        queryClient.removeQueries(api.domains.get.queryFilter({ domainId }));
        await readAgain();
      },
    }),
  );
  return (
    <Confirm title={text.remove} submit={text.remove} open onClose={onClose} typed={displayName} action={remove} onConfirm={() => remove.mutate({ domainId })}>
      {text.removal}
    </Confirm>
  );
};
const DIALOGS = { change: Change, remove: Remove } as const;

const Problems = ({
  domain: { status, failure, routingEndsAt, target },
  onChoose,
}: {
  readonly domain: CustomDomain;
  readonly onChoose: (() => void) | undefined;
}) => {
  const reason = failure === null ? "" : identifierInWords(failure);
  const choose =
    onChoose === undefined ? undefined : (
      <button type="button" data-size="small" onClick={onChoose}>
        {text.choose}
      </button>
    );
  return (
    <>
      {status === "failed" ? <Notice tone="bad" title={text.failedBecause(reason)} /> : null}
      {status === "expired" ? <Notice tone="bad" title={text.expiredWhat} /> : null}
      {status === "degraded" ? (
        <Notice
          tone="warn"
          title={
            <>
              {text.ends} <Ago at={routingEndsAt} />.
            </>
          }
        />
      ) : null}
      {target === null ? <Notice tone="busy" title={text.nothingThere} actions={choose} /> : null}
    </>
  );
};

const Target = ({ of }: { readonly of: CustomDomain["target"] }) => {
  const may = useMay();
  const isApp = of?.kind === "app";
  const app = useQuery({ ...api.apps.get.queryOptions({ appId: of?.id ?? "" }), enabled: isApp && may("app:read") }).data;
  if (of === null) return text.nothing;
  if (!isApp) return text.kinds[of.kind];
  return (
    <Link to="/apps/$appId" params={{ appId: of.id }}>
      {app?.name ?? text.kinds.app}
    </Link>
  );
};

export const DomainScreen = () => {
  const { domainId } = route.useParams();
  const may = useMay();
  const [opened, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  // A check that finds what it found before has no event.
  const read = useQuery({
    ...api.domains.get.queryOptions({ domainId }),
    refetchInterval: ({ state: { data } }) => (data?.status === "active" ? 60_000 : FOLLOW_MS),
  });
  const domain = read.data;
  const [mayWrite, mayRemove] = [may("domain:write"), may("domain:delete")];
  const Shown = opened === null ? null : DIALOGS[opened];
  return (
    <DetailPage
      path={[
        <Link key="domains" to="/network/domains">
          {text.title}
        </Link>,
      ]}
      title={domain?.displayName ?? text.one}
      pill={domain === undefined ? undefined : <Pill tone={toneOf(domain.status)}>{text.stateOf(domain.status)}</Pill>}
      facts={
        domain === undefined
          ? []
          : [
              {
                icon: "time",
                words: (
                  <>
                    {text.since} <Ago at={domain.statusSince} />
                  </>
                ),
              },
              {
                words: (
                  <>
                    {text.leads} <Target of={domain.target} />
                  </>
                ),
              },
            ]
      }
      actions={
        domain !== undefined && mayWrite ? (
          <button type="button" onClick={() => setOpened("change")}>
            {text.change}
          </button>
        ) : undefined
      }
      more={domain !== undefined && mayRemove ? <MenuItem onChoose={() => setOpened("remove")}>{text.remove}</MenuItem> : undefined}
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <Problems domain={found} onChoose={mayWrite ? () => setOpened("change") : undefined} />
            <Beside main={<DomainRecords domain={found} />} side={<DomainCertificate domain={found} />} />
            {Shown === null ? null : <Shown domain={found} onClose={() => setOpened(null)} />}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};
