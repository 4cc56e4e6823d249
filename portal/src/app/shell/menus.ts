// The contents of the frame's menus, as parts that load when somebody is about to open one.
import { lazy } from "react";

export const loadMenus = () => import("./menu-contents.tsx");
export const TenantItems = lazy(async () => ({ default: (await loadMenus()).TenantItems }));
export const AddItems = lazy(async () => ({ default: (await loadMenus()).AddItems }));
export const PersonItems = lazy(async () => ({ default: (await loadMenus()).PersonItems }));
