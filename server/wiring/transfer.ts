// The features that take a tenant's data out, and bring it in.
import type { Permission } from "../../protocol/index.ts";
import { columnsOf, createDataExports, exportKeys, pagesOf, permissionsFor, SECTIONS, type Section, signatureOf } from "../features/data-exports/index.ts";
import { createImports } from "../features/imports/index.ts";
import { version } from "../version.ts";
import type { Wiring } from "./deps.ts";
import { type HandlersOfAll, handlersOf, type Peers } from "./peers.ts";

const sectionNamed = (kind: string): Section => {
  const section = SECTIONS.find((each) => each.kind === kind);
  if (section === undefined) throw new Error(`no section has records of the kind ${kind}`);
  return section;
};

export const transfer = ({ kit, serving, settings, failed, publicUrl }: Wiring, peers: Peers & HandlersOfAll) => ({
  dataExports: () =>
    createDataExports({
      ...kit,
      tenants: peers.tenants.lookup,
      memberships: peers.tenants.memberships,
      keyById: peers.apiKeys.byId,
      blocks: () => peers.security.blocks,
      handlers: handlersOf(peers),
      gatewayVersion: version,
      publicUrl,
      wakeJob: (name) => serving.book.wake(name),
      onError: failed("data export"),
      settings: settings?.dataExports,
    }),
  imports: () =>
    createImports({
      ...kit,
      tenants: peers.tenants.lookup,
      memberships: peers.tenants.memberships,
      keyById: peers.apiKeys.byId,
      blocks: () => peers.security.blocks,
      handlers: handlersOf(peers),
      sections: SECTIONS.map(({ scope, kind }) => ({ scope, kind, permission: permissionsFor([scope])[0] as Permission })), // as: a test says so of each
      kindOf: (scope) => SECTIONS.find((section) => section.scope === scope && section.each === undefined)?.kind,
      isKind: (kind) => SECTIONS.some((section) => section.kind === kind),
      isSigned: (digest, signature) => exportKeys(kit.secretBox).some((key) => signatureOf(key, digest) === signature),
      wakeJob: (name) => serving.book.wake(name),
      onError: failed("import"),
      settings: settings?.imports,
      kindNamed: (kind) => {
        const section = sectionNamed(kind);
        return { ...section, fields: columnsOf(section), isHistory: section.isHistory === true };
      },
      recordsOf: (scope, kind) => pagesOf(handlersOf(peers), scope, sectionNamed(kind), kind === "settings" ? { tenantId: scope.tenantId } : {}),
    }),
});
