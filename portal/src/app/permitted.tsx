// The screen of the address, unless the person may not read what it shows: then nothing is asked, and nothing refused.
import { Outlet, useMatches } from "@tanstack/react-router";
import { useMe } from "../api/session.ts";
import { Empty, Page } from "../ui/parts.tsx";
import { isOpenTo, PLACES } from "./places.ts";

const isAt = (pathname: string, to: string): boolean => pathname === to || (to !== "/" && pathname.startsWith(`${to}/`));

export const PermittedScreen = () => {
  // Not the location, which is ahead of the screen while the next one loads.
  const pathname = useMatches({ select: (matches) => matches.at(-1)?.pathname ?? "/" });
  const me = useMe();
  const place = PLACES.find(({ to }) => isAt(pathname, to));
  if (place === undefined || isOpenTo(place, me)) return <Outlet />;
  return (
    <Page title={place.word}>
      <Empty>Your role does not permit you to see this. Owners and administrators of the tenant can change your role.</Empty>
    </Page>
  );
};
