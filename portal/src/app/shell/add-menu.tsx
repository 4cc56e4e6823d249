// What the person may add, from wherever they are.
import { useMay } from "../../api/session.ts";
import { Icon } from "../../ui/icon.tsx";
import { Menu } from "../../ui/menu.tsx";
import { AddItems, loadMenus } from "./menus.ts";
import css from "./shell.module.css";

/** Who may none of this has nothing to add. */
const NEEDS: readonly string[] = ["device:pair", "deployment:create", "invite:write"];

export const AddMenu = () => {
  const may = useMay();
  if (!NEEDS.some(may)) return null;
  return (
    <Menu name="Add" className={css["square"]} button={<Icon name="add" />} onNear={loadMenus}>
      <AddItems />
    </Menu>
  );
};
