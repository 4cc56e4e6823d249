// What people may install: a template that the tenant's plan allows, with a configuration that fits it.
import type { AppConfig } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { isDeeperThan, jsonBytes } from "../../core/rows/json-bounds.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import type { ConfigFault } from "./catalogue/check-config.ts";
import { completeSecrets } from "./catalogue/complete-secrets.ts";
import type { AppCatalogue, CatalogueEntry } from "./catalogue/load.ts";
import type { Content } from "./store/snapshots.ts";
import { allows, installTier } from "./templates.ts";

const MAX_BYTES = 65_536;
const MAX_DEPTH = 10;

type Given = Readonly<Record<string, unknown>>;

export interface Contents {
  /** A template's present version with this configuration. */
  prepare(scope: TenantScope, templateId: string, config: Given): Content & { readonly title: string };
  /** The same version of the template with another configuration, as long as the catalogue has that version. */
  configure(content: Content, config: Given): Content;
  /** With those that the template lets us make. */
  secrets(templateId: string, given: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
}

const invalid = (templateId: string, issues: readonly ConfigFault[]): AppError => new AppError("APP_CONFIG_INVALID", { details: { templateId, issues } });

const boundFaults = (config: Given): readonly ConfigFault[] => {
  if (isDeeperThan(config, MAX_DEPTH)) return [{ path: "", code: "too_deep", message: `must not be nested deeper than ${MAX_DEPTH}` }];
  return jsonBytes(config) > MAX_BYTES ? [{ path: "", code: "too_big", message: "must have at most 64 KiB" }] : [];
};

const checked = ({ template, checkConfig }: CatalogueEntry, given: Given): AppConfig => {
  const beyond = boundFaults(given);
  if (beyond.length > 0) throw invalid(template.id, beyond);
  const { config, faults } = checkConfig(given as AppConfig); // as: it came as JSON
  if (faults.length > 0) throw invalid(template.id, faults);
  return config;
};

export const createContents = ({ catalogue, plan }: { readonly catalogue: AppCatalogue; readonly plan: Pick<FeatureKit["plan"], "tierOf"> }): Contents => {
  const find = (templateId: string): CatalogueEntry => {
    const entry = catalogue.find(templateId);
    if (entry === undefined) throw new AppError("APP_TEMPLATE_NOT_FOUND", { details: { templateId } });
    return entry;
  };
  return {
    prepare: (scope, templateId, given) => {
      const entry = find(templateId);
      const { template, spec } = entry;
      if (!allows(installTier(plan, scope.tenant), template))
        throw new AppError("PLAN_UPGRADE_REQUIRED", { details: { templateId, requiredPlan: template.minPlan } });
      return { appType: templateId, templateVersion: template.version, spec, config: checked(entry, given), title: template.name };
    },
    configure: (content, given) => ({ ...content, config: checked(find(content.appType), given) }),
    secrets: (templateId, given) => {
      const { values, faults } = completeSecrets(find(templateId).template, new Map(Object.entries(given)));
      if (faults.length > 0)
        throw invalid(
          templateId,
          faults.map((fault) => ({ ...fault, path: `secrets.${fault.path}` })),
        );
      return Object.fromEntries(values);
    },
  };
};
