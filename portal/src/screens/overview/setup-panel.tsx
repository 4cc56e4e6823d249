// The first steps of a tenant: what is done folds into a line, and all of it goes when everything is done or somebody hides it.
import type { Overview } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { api, queryClient } from "../../api/client.ts";
import { useMay, useMe } from "../../api/session.ts";
import { Failure } from "../../ui/failure.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Panel } from "../../ui/parts.tsx";
import css from "./overview.module.css";
import { text } from "./text.ts";

type Setup = Overview["setup"];
type Step = Setup["done"][number];

interface Way {
  readonly needs: string;
  readonly link: Pick<LinkProps, "to" | "search">;
}
/** Null: it is done where the gateway runs. */
const WAYS: Readonly<Record<Step, Way | null>> = {
  certificate: null,
  device: { needs: "device:pair", link: { to: "/pair" } },
  app: { needs: "app:create", link: { to: "/catalogue" } },
  channel: { needs: "alert_rule:write", link: { to: "/alerts", search: { tab: "channels" } } },
  backup: { needs: "backup_policy:write", link: { to: "/backups/policies" } },
};
const STEPS = Object.keys(WAYS) as readonly Step[]; // as: by these names

export const showsSetup = ({ done, hidden }: Setup): boolean => !hidden && done.length < STEPS.length;

const Todo = ({ step, isNext }: { readonly step: Step; readonly isNext: boolean }) => {
  const may = useMay();
  const way = WAYS[step];
  const { title, note, act } = text.setup.steps[step];
  return (
    <li>
      <span className={css["tick"]} />
      <div>
        <strong>{title}</strong>
        <small>{note}</small>
      </div>
      {way === null || !may(way.needs) ? null : (
        <Link {...way.link} data-kind={isNext ? "primary" : "button"} data-size="small">
          {act}
        </Link>
      )}
    </li>
  );
};

export const SetupPanel = ({ setup }: { readonly setup: Setup }) => {
  const may = useMay();
  const { tenantId } = useMe();
  const hide = useMutation(api.tenants.updateSettings.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.overview.pathFilter()) }));
  if (!showsSetup(setup) || !may("tenant:update")) return null;
  const open = STEPS.filter((step) => !setup.done.includes(step));
  const next = open.find((step) => WAYS[step] !== null);
  const done = STEPS.filter((step) => setup.done.includes(step)).map((step) => text.setup.steps[step].done);
  return (
    <Panel
      title={text.setup.title}
      beside={
        <button
          type="button"
          data-kind="plain"
          data-size="small"
          disabled={hide.isPending}
          onClick={() => hide.mutate({ tenantId: tenantId ?? "", setupHidden: true })}
        >
          {text.setup.hide}
        </button>
      }
    >
      {hide.error === null ? null : <Failure error={hide.error} retry={() => hide.reset()} />}
      <ol className={css["steps"]}>
        {done.length === 0 ? null : (
          <li className="muted">
            <span className={css["tick"]} data-done>
              <Icon name="check" />
            </span>
            <span>{text.setup.doneSteps(done)}</span>
            <small>{text.setup.count(done.length, STEPS.length)}</small>
          </li>
        )}
        {open.map((step) => (
          <Todo key={step} step={step} isNext={step === next} />
        ))}
      </ol>
    </Panel>
  );
};
