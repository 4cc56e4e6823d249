// A tab of things that people make, open and end: the list, the button that makes one, and the dialog of the open one.
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Listed } from "../../api/lists.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/alerts");
/** Instead of an id: what does not exist yet. */
export const NEW = "new";

interface TabListProps<Row> {
  readonly tab: "rules" | "silences" | "channels";
  readonly list: Listed<Row>;
  readonly columns: readonly Column<Row>[];
  readonly id: (row: Row) => string;
  /** The words of the button that makes one; undefined for who may not. */
  readonly create: string | undefined;
  readonly none: string;
  /** The dialog; `NEW` makes one. */
  readonly dialog: (open: string, onClose: () => void) => ReactNode;
}

export const TabList = <Row,>({ tab, list, columns, id, create, none, dialog }: TabListProps<Row>) => {
  const { open } = route.useSearch();
  const navigate = useNavigate();
  const show = (opened?: string): void => void navigate({ to: "/alerts", search: { tab, ...(opened === undefined ? {} : { open: opened }) }, replace: true });
  const button =
    create === undefined ? undefined : (
      <button type="button" data-kind="primary" onClick={() => show(NEW)}>
        {create}
      </button>
    );
  return (
    <>
      {list.count > 0 && button !== undefined ? <div>{button}</div> : null}
      <List label={text.tabs[tab]} columns={columns} list={list} rows={6} id={id} opened={open} onOpen={(row) => show(id(row))} none={none} action={button} />
      {open === undefined ? null : dialog(open, () => show())}
    </>
  );
};
