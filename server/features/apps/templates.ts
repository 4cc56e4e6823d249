// The catalogue as a tenant sees it: which applications there are, which its plan allows, which its devices can run, and where they are installed.
import { type AppTemplate, type contract, MAX_INSTALLED, PLANS, type Plan as Tier, toWindow } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { bindingOf, readCursor, writeCursor } from "../../core/rows/cursor.ts";
import type { TenantFacts, TenantScope } from "../../core/scope.ts";
import { groupBy } from "../../core/structures/group-by.ts";
import type { FeatureKit } from "../kit.ts";
import type { TemplateFacts } from "./catalogue/load.ts";
import { createFits, type FitsDeps } from "./fits.ts";
import { findInstalled } from "./store/installed.ts";

export interface TemplatesDeps extends FitsDeps, Pick<FeatureKit, "plan"> {
  readonly db: SqlTx;
}

export const allows = (tier: Tier, template: TemplateFacts): boolean => PLANS.indexOf(tier) >= PLANS.indexOf(template.minPlan);

/** The plan that counts for a tenant. Whoever lifts all of its limits lets it install everything. */
export const installTier = (plan: Pick<FeatureKit["plan"], "tierOf">, tenant: TenantFacts): Tier =>
  tenant.limitOverrides["*"] === null ? "business" : plan.tierOf(tenant);

type PlanFacts = Pick<AppTemplate, "available" | "requiredPlan">;
const planFacts = (tier: Tier, template: TemplateFacts): PlanFacts =>
  allows(tier, template) ? { available: true } : { available: false, requiredPlan: template.minPlan };

const contains = ({ name, tagline, description }: TemplateFacts, text: string): boolean =>
  [name, tagline, description].some((part) => part.toLowerCase().includes(text.toLowerCase()));

type Fitted = TemplateFacts & PlanFacts & Pick<AppTemplate, "fits">;

export const createTemplates = (deps: TemplatesDeps): Pick<Handlers<typeof contract.apps>, "templates" | "template"> => {
  const { plan, catalogue, db } = deps;
  const readFits = createFits(deps);
  /** Says where these are installed. */
  const withInstalled = async (scope: TenantScope, templates: readonly Fitted[]): Promise<AppTemplate[]> => {
    const ids = templates.map(({ id }) => id);
    const found = groupBy(await findInstalled(db, scope, ids, MAX_INSTALLED), ({ app_type }) => app_type);
    const readsDevices = permissionsIn(scope).has("device:read");
    return templates.map((template) => {
      const rows = found.get(template.id) ?? [];
      const installed = rows.map((row) => ({
        appId: row.app_id,
        name: row.name,
        deviceId: row.device_id,
        deviceName: readsDevices ? row.device_name : null,
        status: row.status,
        updateAvailable: row.template_version !== template.version,
      }));
      return { ...template, installed, installedCount: rows[0]?.count ?? 0 };
    });
  };
  return {
    templates: async ({ scope }, query) => {
      const { category, q, available, fits } = query;
      const tier = installTier(plan, scope.tenant);
      const fitsOf = await readFits(scope);
      const found = catalogue.entries
        .map(({ template }): Fitted => ({ ...template, ...planFacts(tier, template), fits: fitsOf(template) }))
        .filter(
          (template) =>
            (category === undefined || template.categories.includes(category)) &&
            (q === undefined || contains(template, q)) &&
            (available === undefined || template.available === available) &&
            (fits === undefined || (template.fits !== null && template.fits.devices > 0 === fits)),
        );
      const binding = bindingOf("app-templates", scope.tenantId, query);
      const [last = ""] = readCursor(query.cursor, binding, [{ kind: "text" }]) ?? [];
      const rest = found.filter(({ id }) => id > String(last));
      const items = rest.slice(0, toWindow(query).limit);
      const end = items.at(-1);
      const nextCursor = end === undefined || items.length === rest.length ? {} : { nextCursor: writeCursor(binding, [end.id]) };
      return { items: await withInstalled(scope, items), ...nextCursor };
    },
    template: async ({ scope, fail }, { templateId }) => {
      const template = catalogue.find(templateId)?.template;
      if (template === undefined) throw fail("APP_TEMPLATE_NOT_FOUND", { templateId });
      const fits = (await readFits(scope))(template);
      const [shown] = await withInstalled(scope, [{ ...template, ...planFacts(installTier(plan, scope.tenant), template), fits }]);
      if (shown === undefined) throw new Error("a template got lost");
      return shown;
    },
  };
};
