// What is in the menus of the frame, which load when somebody is about to open one.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { createPortal } from "react-dom";
import { api } from "../../api/client.ts";
import { useMay, useMe } from "../../api/session.ts";
import { CreateTenant } from "../../parts/create-tenant.tsx";
import { useSignOut } from "../../parts/sign-out.tsx";
import { TENANT_STAYS, useSwitchTenant } from "../../parts/switch-tenant.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Icon } from "../../ui/icon.tsx";
import type { IconName } from "../../ui/icon-names.ts";
import { itemClass, MenuItem, MenuItems } from "../../ui/menu-items.tsx";
import { chooseScheme, SCHEMES, scheme } from "../scheme.ts";
import css from "./shell.module.css";

/** From so many tenants on, a field finds one. */
const SEARCH_FROM = 8;

/** `landing`: where the page is after the tenant has changed. */
export const TenantItems = ({ landing }: { readonly landing: string }) => {
  const { tenantId: here, subject } = useMe();
  const tenants = useQuery({ ...api.account.tenants.queryOptions({}), staleTime: 60_000, refetchInterval: false }).data?.items ?? [];
  const [typed, setTyped] = useState("");
  const [creates, setCreates] = useState(false);
  const { choose, stays, forget } = useSwitchTenant(landing);
  const found = tenants.filter(({ name }) => name.toLowerCase().includes(typed.trim().toLowerCase()));
  const search = (
    <input
      className={css["search"]}
      aria-label="Search tenants"
      placeholder="Search tenants"
      autoComplete="off"
      value={typed}
      maxLength={100}
      onChange={({ target }) => setTyped(target.value)}
    />
  );
  return (
    <>
      <MenuItems label="Tenants" above={tenants.length < SEARCH_FROM ? null : search}>
        {found.map(({ tenantId, name }) => (
          <MenuItem
            key={tenantId}
            checked={tenantId === here}
            disabled={choose.isPending}
            onChoose={() => (tenantId === here ? undefined : choose.mutate({ tenantId }))}
          >
            <span className={`${css["grow"]} cut`}>{name}</span>
            {tenantId === here ? <Icon name="check" /> : null}
          </MenuItem>
        ))}
        <MenuItem onChoose={() => setCreates(true)}>
          <Icon name="add" /> New tenant
        </MenuItem>
      </MenuItems>
      {createPortal(
        <>
          <Dialog title="The tenant did not change" open={stays || choose.error !== null} onClose={forget}>
            {stays ? <p role="status">{TENANT_STAYS}</p> : <Failure error={choose.error} />}
          </Dialog>
          <Dialog title="New tenant" open={creates} onClose={() => setCreates(false)}>
            <CreateTenant userId={subject} onCreated={({ tenantId }) => choose.mutate({ tenantId: tenantId as `ten_${string}` })} />
          </Dialog>
        </>,
        document.body,
      )}
    </>
  );
};

interface Addition {
  readonly to: "/pair" | "/catalogue" | "/members";
  readonly search?: { readonly tab: "invites" };
  readonly word: string;
  readonly icon: IconName;
  readonly needs: string;
}
const ADDITIONS: readonly Addition[] = [
  { to: "/pair", word: "Pair a device", icon: "devices", needs: "device:pair" },
  { to: "/catalogue", word: "Install an app", icon: "apps", needs: "deployment:create" },
  { to: "/members", search: { tab: "invites" }, word: "Invite a person", icon: "people", needs: "invite:write" },
];

export const AddItems = () => {
  const may = useMay();
  return (
    <MenuItems label="Add">
      {ADDITIONS.filter(({ needs }) => may(needs)).map(({ to, search, word, icon }) => (
        <Link key={to} to={to} {...(search === undefined ? {} : { search })} role="menuitem" tabIndex={-1} className={itemClass}>
          <Icon name={icon} /> {word}
        </Link>
      ))}
    </MenuItems>
  );
};

const SCHEME_WORDS = { auto: "Colors of the system", light: "Light colors", dark: "Dark colors" } as const;

export const PersonItems = ({ onKeys }: { readonly onKeys: () => void }) => {
  const { name: current } = scheme.use();
  const logout = useSignOut();
  return (
    <>
      <MenuItems label="You">
        <Link to="/account" role="menuitem" tabIndex={-1} className={itemClass}>
          <Icon name="person" /> Account
        </Link>
        {SCHEMES.map((each) => (
          <MenuItem key={each} checked={each === current} onChoose={() => chooseScheme(each)}>
            <span className={css["grow"]}>{SCHEME_WORDS[each]}</span>
            {each === current ? <Icon name="check" /> : null}
          </MenuItem>
        ))}
        <MenuItem onChoose={onKeys}>
          <Icon name="keys" /> Keys
        </MenuItem>
        <MenuItem disabled={logout.isPending} onChoose={() => logout.mutate({})}>
          <Icon name="signOut" /> Sign out
        </MenuItem>
      </MenuItems>
      {createPortal(
        <Dialog title="You are still signed in" open={logout.error !== null} onClose={logout.reset}>
          <Failure error={logout.error} />
        </Dialog>,
        document.body,
      )}
    </>
  );
};
