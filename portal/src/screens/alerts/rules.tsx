// The rules of alerts, and the one that is open.
import type { AlertRule } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { selectorText } from "../../parts/selector-field.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Facts, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { conditionText } from "./condition.ts";
import { RuleForm } from "./rule-form.tsx";
import { NEW, TabList } from "./tab-list.tsx";
import { text } from "./text.ts";

const State = ({ of: { enabled } }: { readonly of: AlertRule }) => <Status status={enabled ? "active" : "off"} word={enabled ? text.on : text.off} />;

const COLUMNS: readonly Column<AlertRule>[] = [
  { title: "Name", width: "minmax(110px, 2fr)", phone: true, cell: ({ name }) => name },
  { title: "Condition", width: "minmax(110px, 2fr)", phone: true, cell: conditionText },
  { title: "Severity", width: "96px", cell: ({ severity }) => <Status status={severity} /> },
  { title: "Devices", width: "minmax(80px, 1fr)", cell: ({ scope }) => selectorText(scope) },
  { title: "State", width: "64px", phone: true, cell: (rule) => <State of={rule} /> },
];

const OneRule = ({ ruleId, onClose }: { readonly ruleId: string; readonly onClose: () => void }) => {
  const may = useMay();
  const read = useQuery(api.alerts.getRule.queryOptions({ ruleId }));
  return (
    <Dialog title={read.data?.name ?? "Rule"} open onClose={onClose}>
      <Loaded read={read} rows={6}>
        {(rule) =>
          may("alert_rule:write") ? (
            <RuleForm stored={rule} onClose={onClose} />
          ) : (
            <Facts of={{ Condition: conditionText(rule), Severity: rule.severity, Devices: selectorText(rule.scope), State: <State of={rule} /> }} />
          )
        }
      </Loaded>
    </Dialog>
  );
};

export const Rules = () => {
  const may = useMay();
  const list = usePages<AlertRule>((page) => api.alerts.listRules.queryOptions({ sort: "name", page, pageSize: PAGE_SIZE }));
  return (
    <TabList
      tab="rules"
      list={list}
      columns={COLUMNS}
      id={({ ruleId }) => ruleId}
      create={may("alert_rule:write") ? text.createRule : undefined}
      none={text.noRules}
      dialog={(open, onClose) =>
        open === NEW ? (
          <Dialog title={text.createRule} open onClose={onClose}>
            <RuleForm stored={null} onClose={onClose} />
          </Dialog>
        ) : (
          <OneRule key={open} ruleId={open} onClose={onClose} />
        )
      }
    />
  );
};
