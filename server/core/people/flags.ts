// What a feature may ask of the feature flags. Answers may be up to five seconds old.
import type { Flag } from "../../../protocol/index.ts";

export interface Flags {
  /** For a tenant, or for the installation without one. */
  isOn(flag: Flag, tenantId: string | null): Promise<boolean>;
  on(tenantId: string | null): Promise<readonly Flag[]>;
}
