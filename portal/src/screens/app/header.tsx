// The head of an app's page: what it is, how it is, and what people do with it, as far as its state and their role allow it.
import type { AppDetails } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, Suspense, useMemo, useRef, useState } from "react";
import { api, mooring } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { canApp } from "../../parts/apps/app-verbs.ts";
import { readDeployablesAgain } from "../../parts/apps/deployables.ts";
import { RemoveApp } from "../../parts/apps/remove-app.tsx";
import { AppTile } from "../../ui/app-tile.tsx";
import { DetailPage, type PageFact, Pill } from "../../ui/detail-page.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { PageIcon } from "../../ui/icon.tsx";
import { useKeys } from "../../ui/keyboard.ts";
import { MenuItem } from "../../ui/menu-items.tsx";
import { Ago, Since } from "../../ui/time.tsx";
import { LastBackup } from "./backups.ts";
import { useMayChange } from "./draft.ts";
import { pageOf, shownState, useDevice } from "./state.ts";
import { text } from "./text.ts";

interface DialogProps {
  readonly app: AppDetails;
  readonly onClose: () => void;
}

const Remove = ({ app: { appId, name }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.apps.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/apps" });
        await readDeployablesAgain();
      },
    }),
  );
  return (
    <RemoveApp
      word={text.remove}
      what={text.removal}
      name={name}
      onClose={onClose}
      action={remove}
      onConfirm={(keepVolumes) => remove.mutate({ appId, keepVolumes })}
    />
  );
};

const Cancel = ({ app: { deploymentId }, onClose }: DialogProps) => {
  const cancel = useMutation(
    api.deployments.cancel.mutationOptions({
      onSuccess: () => {
        onClose();
        return readDeployablesAgain();
      },
    }),
  );
  return (
    <Confirm
      title={`${text.cancel}?`}
      open
      onClose={onClose}
      submit={text.cancel}
      back={text.back}
      action={cancel}
      onConfirm={() => deploymentId !== null && cancel.mutate({ deploymentId })}
    >
      {text.cancelWhat}
    </Confirm>
  );
};

const DIALOGS = { cancel: Cancel, remove: Remove } as const;
const VERBS = ["start", "stop", "restart"] as const;

/** Opens the app's page, also by the key `o`. */
const Open = ({ app, isAway }: { readonly app: AppDetails; readonly isAway: boolean }) => {
  const link = useRef<HTMLAnchorElement>(null);
  useKeys(useMemo(() => ({ o: () => link.current?.click() }), []));
  const page = pageOf(app);
  if (page === undefined) return null;
  const content = (
    <>
      <PageIcon name="open" />
      {text.open}
    </>
  );
  return isAway || app.status !== "running" ? (
    <button type="button" data-kind="primary" disabled title={isAway ? text.away : text.notRunning}>
      {content}
    </button>
  ) : (
    <a ref={link} href={page} target="_blank" rel="noreferrer" data-kind="primary">
      {content}
    </a>
  );
};

const factsOf = (app: AppDetails, device: ReturnType<typeof useDevice>["device"], seesBackups: boolean): readonly PageFact[] => {
  const { deviceId, appType, templateVersion, revision, runningSince, reported, reportedAt } = app;
  const facts: PageFact[] = [
    {
      icon: "system",
      words: (
        <Link to="/devices/$deviceId" params={{ deviceId }}>
          {device === undefined ? deviceId : deviceLabel(device)}
        </Link>
      ),
    },
    {
      words: (
        <>
          <Link to="/catalogue/$templateId" params={{ templateId: appType }}>
            {appType}
          </Link>{" "}
          {text.version(templateVersion, revision)}
        </>
      ),
    },
  ];
  if (runningSince !== null)
    facts.push({
      icon: "time",
      words: (
        <>
          {text.up} <Since at={runningSince} />
          {reported === null ? null : text.restarted(reported.restarts)}
        </>
      ),
    });
  else if (reportedAt !== null)
    facts.push({
      words: (
        <>
          {text.reported} <Ago at={reportedAt} />
        </>
      ),
    });
  if (seesBackups)
    facts.push({
      icon: "backup",
      words: (
        <Suspense fallback={null}>
          <LastBackup app={app} />
        </Suspense>
      ),
    });
  return facts;
};

interface AppHeaderProps {
  readonly app: AppDetails;
  readonly tabs: ReactNode;
  readonly children: ReactNode;
}
export const AppHeader = ({ app, tabs, children }: AppHeaderProps) => {
  const { appId, deploymentId, name, status, icon, hue } = app;
  const may = useMay();
  const mayChange = useMayChange(app);
  const { device, isAway } = useDevice(app);
  const [opened, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  const change = useMutation({ mutationFn: (verb: (typeof VERBS)[number]) => mooring.apps[verb].mutate({ appId }), onSuccess: readDeployablesAgain });
  const verbs = may("app:update") ? VERBS.filter((verb) => canApp(status, verb)) : [];
  const canCancel = deploymentId !== null && may("deployment:deploy") && ["pending", "installing"].includes(status);
  const canRemove = may("app:delete") && canApp(status, "remove");
  // What is done most often stands beside the title.
  const first = verbs.includes("restart") ? "restart" : verbs.includes("start") ? "start" : undefined;
  const rest = verbs.filter((verb) => verb !== first);
  const Shown = opened === null ? null : DIALOGS[opened];
  const state = shownState(app);
  return (
    <DetailPage
      path={[
        <Link key="apps" to="/apps">
          {text.apps}
        </Link>,
        <Link key="device" to="/apps" search={{ deviceId: app.deviceId }}>
          {device === undefined ? app.deviceId : deviceLabel(device)}
        </Link>,
      ]}
      title={name}
      mark={<AppTile icon={icon} hue={hue} />}
      pill={<Pill tone={state.tone}>{state.word}</Pill>}
      facts={factsOf(app, device, may("backup:read"))}
      actions={
        <>
          {first === undefined ? null : (
            <button type="button" disabled={change.isPending} onClick={() => change.mutate(first)}>
              <PageIcon name={first} />
              {text[first]}
            </button>
          )}
          {mayChange ? (
            <Link to="/apps/$appId" params={{ appId }} search={{ tab: "configuration" }} data-kind="button">
              <PageIcon name="edit" />
              {text.change}
            </Link>
          ) : null}
          <Open app={app} isAway={isAway} />
        </>
      }
      more={
        rest.length === 0 && !canCancel && !canRemove ? undefined : (
          <>
            {rest.map((verb) => (
              <MenuItem key={verb} disabled={change.isPending} onChoose={() => change.mutate(verb)}>
                {text[verb]}
              </MenuItem>
            ))}
            {canCancel ? <MenuItem onChoose={() => setOpened("cancel")}>{text.cancel}</MenuItem> : null}
            {canRemove ? <MenuItem onChoose={() => setOpened("remove")}>{text.remove}</MenuItem> : null}
          </>
        )
      }
      tabs={tabs}
    >
      {change.error === null ? null : <Failure key={change.submittedAt} error={change.error} />}
      {children}
      {Shown === null ? null : <Shown app={app} onClose={() => setOpened(null)} />}
    </DetailPage>
  );
};
