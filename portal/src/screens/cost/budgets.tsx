// The budgets: what each allows, how much is spent, what is expected, and which threshold was reached.
import type { CostBudget } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Bar } from "../../ui/figures.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { BudgetForm, EditBudget } from "./budget-form.tsx";
import { moneyText } from "./money.ts";
import { text } from "./text.ts";

const route = getRouteApi("/cost");
/** Instead of an id: what does not exist yet. */
const NEW = "new";

/** The highest threshold that has been reached. */
const reachedOf = ({ thresholds }: CostBudget) => thresholds.filter(({ reachedAt }) => reachedAt !== null).toSorted((a, b) => b.percent - a.percent)[0];

const State = ({ of }: { readonly of: CostBudget }) => {
  const reached = reachedOf(of);
  if (reached === undefined) return <Status status="active" word={text.within} />;
  const isOver = reached.percent >= 100 && reached.basis === "actual";
  return <Status status={isOver ? "failed" : "pending"} word={text.reached(reached.percent, reached.basis === "forecast")} />;
};

const watchedText = ({ scope }: CostBudget): string =>
  scope.kind === "tag" ? scope.tag : scope.kind === "devices" ? `${scope.deviceIds.length} ${text.devices.toLowerCase()}` : text.scopes[scope.kind];

const COLUMNS: readonly Column<CostBudget>[] = [
  { title: text.name, width: "minmax(100px, 2fr)", phone: true, cell: ({ name }) => name },
  { title: text.watches, width: "minmax(90px, 1fr)", cell: watchedText },
  {
    title: text.spent,
    width: "minmax(150px, 1.6fr)",
    phone: true,
    cell: (budget) => `${moneyText(budget.spent, budget)} / ${moneyText(budget.amount, budget)}`,
  },
  {
    title: text.ofAmount,
    width: "minmax(80px, 1fr)",
    cell: ({ spent, amount }) => <Bar parts={[{ tone: spent >= amount ? "bad" : "busy", count: Math.min(spent, amount) }]} whole={amount} />,
  },
  { title: text.expected, width: "110px", cell: (budget) => (budget.expected === null ? text.littleKnown : moneyText(budget.expected, budget)) },
  { title: text.state, width: "140px", phone: true, cell: (budget) => <State of={budget} /> },
];

const OneBudget = ({ budgetId, onClose }: { readonly budgetId: string; readonly onClose: () => void }) => {
  const read = useQuery(api.costs.getBudget.queryOptions({ budgetId }));
  return (
    <Dialog title={read.data?.name ?? text.editBudget} open onClose={onClose}>
      <Loaded read={read} rows={5}>
        {(stored) => <EditBudget stored={stored} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
};

export const Budgets = () => {
  const may = useMay()("cost:write");
  const { open } = route.useSearch();
  const navigate = useNavigate();
  const rates = useQuery(api.costs.getRates.queryOptions({}));
  const newest = rates.data?.versions[0];
  const list = usePages<CostBudget>((page) => api.costs.listBudgets.queryOptions({ page, pageSize: PAGE_SIZE }));
  const show = (opened?: string): void =>
    void navigate({ to: "/cost", search: { tab: "budgets", ...(opened === undefined ? {} : { open: opened }) }, replace: true });
  const button =
    may && newest !== undefined ? (
      <button type="button" data-kind="primary" onClick={() => show(NEW)}>
        {text.createBudget}
      </button>
    ) : undefined;
  return (
    <>
      {list.count > 0 && button !== undefined ? <div>{button}</div> : null}
      <List
        label={text.tabs.budgets}
        columns={COLUMNS}
        list={list}
        rows={4}
        fill={false}
        id={({ budgetId }) => budgetId}
        opened={open}
        onOpen={({ budgetId }) => show(budgetId)}
        none={newest === undefined ? text.needRates : text.noBudgets}
        action={button}
      />
      {open === NEW && newest !== undefined ? (
        <Dialog title={text.createBudget} open onClose={() => show()}>
          <BudgetForm currency={newest.currency} stored={null} onClose={() => show()} />
        </Dialog>
      ) : null}
      {open === undefined || open === NEW ? null : <OneBudget key={open} budgetId={open} onClose={() => show()} />}
    </>
  );
};
