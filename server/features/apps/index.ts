// Apps: the catalogue of applications that a device can run.
import { contract } from "../../../protocol/index.ts";
import { implement } from "../../core/feature.ts";
import type { Feature } from "../kit.ts";
import { createTemplates, type TemplatesDeps } from "./templates.ts";

export type { CheckedConfig, ConfigFault } from "./catalogue/check-config.ts";
export { completeSecrets } from "./catalogue/complete-secrets.ts";
export { type AppCatalogue, type CatalogueEntry, createAppCatalogue, loadAppCatalogue } from "./catalogue/load.ts";

export const createAppFeature = (deps: TemplatesDeps): Feature<typeof contract.apps> => ({
  handlers: implement(contract.apps, createTemplates(deps)),
});
