// The rules that raise security alerts and block, and the one that is open.
import type { SecurityRule } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { secondsText } from "../../ui/fields/seconds-field.tsx";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Facts, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { RuleForm } from "./rule-form.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/security");
/** Instead of an id: a rule that does not exist yet. */
const NEW = "new";

const State = ({ enabled }: SecurityRule) => <Status status={enabled ? "active" : "off"} word={enabled ? text.on : text.off} />;
const whenText = ({ conditions: { count, windowSeconds } }: SecurityRule): string => text.when(count, secondsText(windowSeconds));
const thenText = ({ conditions: { severity }, actions: { alert, block } }: SecurityRule): string =>
  text.outcome(alert ? severity : null, block === null ? null : text.blockText(text.about[block.entityType], secondsText(block.seconds)));

const COLUMNS: readonly Column<SecurityRule>[] = [
  { title: text.name, width: "minmax(120px, 3fr)", phone: true, cell: ({ name }) => name },
  { title: "Kind", width: "70px", cell: ({ builtIn }) => (builtIn ? <span className="muted">{text.builtIn}</span> : null) },
  { title: "Type", width: "minmax(100px, 2fr)", cell: ({ type }) => <code>{type}</code> },
  { title: "When", width: "minmax(90px, 140px)", phone: true, cell: whenText },
  { title: "Then", width: "minmax(90px, 2fr)", cell: thenText },
  { title: "State", width: "64px", phone: true, cell: (rule) => <State {...rule} /> },
];

const OneRule = ({ ruleId, onClose }: { readonly ruleId: string; readonly onClose: () => void }) => {
  const may = useMay();
  const read = useQuery(api.security.getRule.queryOptions({ securityRuleId: ruleId }));
  return (
    <Dialog title={read.data?.name ?? "Rule"} open onClose={onClose}>
      <Loaded read={read} rows={6}>
        {(rule) =>
          may("security:rules") ? (
            <RuleForm stored={rule} onClose={onClose} />
          ) : (
            <Facts of={{ State: <State {...rule} />, Type: <code>{rule.type}</code>, When: whenText(rule), Then: thenText(rule) }} />
          )
        }
      </Loaded>
    </Dialog>
  );
};

export const Rules = () => {
  const { open } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const read = useQuery(api.security.listRules.queryOptions({}));
  const show = (ruleId?: string): void =>
    void navigate({ to: "/security", search: { tab: "rules", ...(ruleId === undefined ? {} : { open: ruleId }) }, replace: true });
  return (
    <>
      {may("security:rules") ? (
        <div>
          <button type="button" data-kind="primary" onClick={() => show(NEW)}>
            {text.createRule}
          </button>
        </div>
      ) : null}
      <Loaded read={read} rows={8}>
        {({ items }) => (
          <Table
            label={text.tabs.rules}
            columns={COLUMNS}
            count={items.length}
            row={(at) => items[at]}
            id={({ id }) => id}
            opened={open}
            onOpen={({ id }) => show(id)}
            fill
          />
        )}
      </Loaded>
      {open === undefined ? null : open === NEW ? (
        <Dialog title={text.createRule} open onClose={() => show()}>
          <RuleForm stored={null} onClose={() => show()} />
        </Dialog>
      ) : (
        <OneRule key={open} ruleId={open} onClose={() => show()} />
      )}
    </>
  );
};
