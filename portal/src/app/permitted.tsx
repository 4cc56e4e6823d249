// The screen of the address, unless the person may not read what it shows: then nothing is asked, and nothing refused.
import { Outlet } from "@tanstack/react-router";
import { lazy } from "react";
import { useMe } from "../api/session.ts";
import { isOpenTo, placeAt } from "./places.ts";

const NoPermission = lazy(() => import("./no-permission.tsx").then((part) => ({ default: part.NoPermission })));

export const PermittedScreen = ({ pathname }: { readonly pathname: string }) => {
  const me = useMe();
  const place = placeAt(pathname);
  if (place === undefined || isOpenTo(place, me)) return <Outlet />;
  return <NoPermission place={place} />;
};
