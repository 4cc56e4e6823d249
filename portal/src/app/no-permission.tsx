// A place that the person may not see: which permission it needs, and who can give it.
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client.ts";
import { useMay, useMe } from "../api/session.ts";
import { Empty, Page } from "../ui/parts.tsx";
import type { Place } from "./places.ts";

const MOST_NAMED = 3;
const GIVERS: readonly string[] = ["owner", "admin"];
const FIRST_MEMBERS = 100;

/** The people who can give a permission, as far as the person may know them. */
const useGivers = (): string => {
  const enabled = useMay()("member:read");
  const members =
    useQuery({ ...api.roles.listMembers.queryOptions({ sort: "role", pageSize: FIRST_MEMBERS }), enabled, refetchInterval: false }).data?.items ?? [];
  const names = members.flatMap(({ role, email }) => (GIVERS.includes(role) ? (email ?? []) : [])).slice(0, MOST_NAMED);
  return names.length === 0 ? "Owners and administrators of the tenant" : new Intl.ListFormat("en").format(names);
};

export const NoPermission = ({ place: { word, needs } }: { readonly place: Place }) => {
  const { role } = useMe();
  const givers = useGivers();
  return (
    <Page title={word}>
      <Empty title={role === null ? `You do not see ${word}` : `Your role “${role}” does not see ${word}`}>
        <span>Your role does not permit you to see this.</span>{" "}
        {needs === "administrator" ? (
          "It is for administrators of this installation."
        ) : (
          <>
            It needs <code>{needs}</code>. {givers} can change your role.
          </>
        )}
      </Empty>
    </Page>
  );
};
