// The catalogue as a tenant sees it: which applications there are, and which its plan allows.
import { type AppTemplate, type contract, PLANS, type Plan as Tier, toWindow } from "../../../protocol/index.ts";
import type { Handlers } from "../../core/feature.ts";
import { bindingOf, readCursor, writeCursor } from "../../core/rows/cursor.ts";
import type { TenantFacts, TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import type { AppCatalogue, TemplateFacts } from "./catalogue/load.ts";

export interface TemplatesDeps extends Pick<FeatureKit, "plan"> {
  readonly catalogue: AppCatalogue;
}

export const allows = (tier: Tier, template: TemplateFacts): boolean => PLANS.indexOf(tier) >= PLANS.indexOf(template.minPlan);

/** The plan that counts for a tenant. Whoever lifts all of its limits lets it install everything. */
export const installTier = (plan: Pick<FeatureKit["plan"], "tierOf">, tenant: TenantFacts): Tier =>
  tenant.limitOverrides["*"] === null ? "business" : plan.tierOf(tenant);

const shownTo = (tier: Tier, template: TemplateFacts): AppTemplate =>
  allows(tier, template) ? { ...template, available: true } : { ...template, available: false, requiredPlan: template.minPlan };

const contains = ({ name, tagline, description }: TemplateFacts, text: string): boolean =>
  [name, tagline, description].some((part) => part.toLowerCase().includes(text.toLowerCase()));

export const createTemplates = ({ plan, catalogue }: TemplatesDeps): Pick<Handlers<typeof contract.apps>, "templates" | "template"> => {
  const all = ({ tenant }: TenantScope): readonly AppTemplate[] => catalogue.entries.map(({ template }) => shownTo(installTier(plan, tenant), template));
  return {
    templates: async ({ scope }, query) => {
      const { category, q, available } = query;
      const found = all(scope).filter(
        (template) =>
          (category === undefined || template.categories.includes(category)) &&
          (q === undefined || contains(template, q)) &&
          (available === undefined || template.available === available),
      );
      const binding = bindingOf("app-templates", scope.tenantId, query);
      const [last = ""] = readCursor(query.cursor, binding, [{ kind: "text" }]) ?? [];
      const rest = found.filter(({ id }) => id > String(last));
      const items = rest.slice(0, toWindow(query).limit);
      const end = items.at(-1);
      return { items, ...(end === undefined || items.length === rest.length ? {} : { nextCursor: writeCursor(binding, [end.id]) }) };
    },
    template: async ({ scope, fail }, { templateId }) => {
      const entry = catalogue.find(templateId);
      if (entry === undefined) throw fail("APP_TEMPLATE_NOT_FOUND", { templateId });
      return shownTo(installTier(plan, scope.tenant), entry.template);
    },
  };
};
