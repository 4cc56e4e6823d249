// The change of an app that somebody has begun and not applied yet. It outlives the tab of the page, not the page.
import type { AppDetails, AppTemplate } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { mooring } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { createStore } from "../../api/store.ts";
import { readDeployablesAgain } from "../../parts/apps/deployables.ts";
import { changesBetween } from "../../parts/config-changes.ts";
import type { DiffRow } from "../../ui/diff.tsx";

export interface Draft {
  readonly config: Record<string, unknown>;
  /** The version of the catalogue, if it is to become that one. */
  readonly version: string | null;
  /** The one that it changes. */
  readonly revision: number;
  readonly at: string;
}

const drafts = createStore<Record<string, Draft | undefined>>({});
export const useDraft = ({ appId }: AppDetails): Draft | undefined => drafts.use()[appId];
export const discard = ({ appId }: AppDetails): void => drafts.set({ [appId]: undefined });

/** What would differ. A text that is empty in the form is a setting that is not there. */
export const draftRows = (app: AppDetails, { version, config }: Pick<Draft, "version" | "config">): readonly DiffRow[] =>
  changesBetween({ version: app.templateVersion, config: app.config }, { version: version ?? app.templateVersion, config }).filter(
    ({ before, after }) => (before ?? "") !== (after ?? ""),
  );

/** A change back to what is makes none. */
export const keep = (app: AppDetails, changed: Pick<Draft, "version" | "config">, base = app.revision): void => {
  const draft = draftRows(app, changed).length === 0 ? undefined : { ...changed, revision: base, at: new Date().toISOString() };
  drafts.set({ [app.appId]: draft });
};

/** What the app would have with the version of the catalogue: its settings, those that are new with their defaults. */
export const updateOf = ({ config }: AppDetails, { version, configSchema: { properties } }: AppTemplate): Pick<Draft, "version" | "config"> => {
  const settings = Object.entries(properties).map(([name, { default: usual }]) => [name, Object.hasOwn(config, name) ? config[name] : usual] as const);
  return { version, config: Object.fromEntries(settings.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))) };
};

export const useMayChange = ({ deploymentId }: AppDetails): boolean => {
  const may = useMay();
  return may("app:update") || (deploymentId !== null && may("deployment:deploy"));
};

/** A deployment gets version and settings in one revision; an app without one gets either. */
export const useApply = (app: AppDetails) => {
  const { appId, deploymentId } = app;
  const may = useMay();
  return useMutation({
    mutationFn: async ({ config, version }: Pick<Draft, "config" | "version">): Promise<unknown> => {
      if (deploymentId !== null && may("deployment:deploy"))
        return mooring.deployments.redeploy.mutate({ deploymentId, configuration: config, upgrade: version !== null });
      return version === null ? mooring.apps.change.mutate({ appId, config }) : mooring.apps.upgrade.mutate({ appId });
    },
    onSuccess: async () => {
      discard(app);
      await readDeployablesAgain();
    },
  });
};
