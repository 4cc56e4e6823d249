// The person: a menu in the rail with their account, the colors, the list of keys and the way out.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Menu } from "../../ui/menu.tsx";
import { layout } from "./layout.ts";
import { loadMenus, PersonItems } from "./menus.ts";
import css from "./shell.module.css";

/** The person's name, or what is known of them. */
export const usePersonName = (): string => {
  const { subject } = useMe();
  const own = useQuery({ ...api.account.get.queryOptions({}), staleTime: 60_000, refetchInterval: false }).data;
  return own?.name ?? own?.email ?? subject;
};

/** Two letters at most, whole ones: a name may begin with a sign of two halves. */
const initialsOf = (name: string): string =>
  name
    .split(/[\s@.]+/)
    .slice(0, 2)
    .map((word) => [...word][0] ?? "")
    .join("")
    .toUpperCase();

export const Initials = ({ of }: { readonly of: string }) => (
  <span className={css["initials"]} aria-hidden="true">
    {initialsOf(of)}
  </span>
);

export const PersonMenu = ({ onKeys }: { readonly onKeys: () => void }) => {
  const name = usePersonName();
  const { form } = layout.use();
  return (
    <Menu
      title={name}
      className={css["person"]}
      onNear={loadMenus}
      button={
        <>
          <Initials of={name} />
          <span className={form === "names" ? "cut" : "out-of-sight"}>{name}</span>
          <span className="out-of-sight">: account</span>
        </>
      }
    >
      <PersonItems onKeys={onKeys} />
    </Menu>
  );
};
