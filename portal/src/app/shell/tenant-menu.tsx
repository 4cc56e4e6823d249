// The tenant that the console shows, and the way to the others of the person. The place stays when the tenant changes.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Icon } from "../../ui/icon.tsx";
import { Menu } from "../../ui/menu.tsx";
import { placeAt } from "../places.ts";
import { layout } from "./layout.ts";
import { loadMenus, TenantItems } from "./menus.ts";
import css from "./shell.module.css";

export const TenantMenu = ({ pathname }: { readonly pathname: string }) => {
  const { tenantId } = useMe();
  const { form } = layout.use();
  const tenants = useQuery({ ...api.account.tenants.queryOptions({}), staleTime: 60_000, refetchInterval: false }).data?.items;
  const name = tenants?.find((tenant) => tenant.tenantId === tenantId)?.name ?? "Mooring";
  return (
    <Menu
      className={css["tenant"]}
      title={name}
      onNear={loadMenus}
      button={
        <>
          <span className={css["mark"]}>
            <Icon name="anchor" />
          </span>
          {form === "icons" ? null : (
            <>
              <span className={css["names"]}>
                <strong className="cut">{name}</strong>
                {form === "phone" ? null : <span className="cut">{location.host}</span>}
              </span>
              <Icon name="unfold" />
            </>
          )}
          <span className="out-of-sight">{form === "icons" ? `${name}, switch tenant` : "Switch tenant"}</span>
        </>
      }
    >
      <TenantItems landing={placeAt(pathname)?.to ?? "/"} />
    </Menu>
  );
};
