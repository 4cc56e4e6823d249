// What an event, an alert or a block is about, with the way to it where there is a screen.
import type { SecurityAlert } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { text } from "./text.ts";

type Subject = Pick<SecurityAlert, "entityType" | "entityId">;

const Shown = ({ entityType, entityId }: Subject) => {
  // A row of a table is one stop of the Tab key.
  const inRow = { tabIndex: -1, onClick: (event: React.MouseEvent) => event.stopPropagation() };
  if (entityType === "device") {
    return (
      <Link to="/devices/$deviceId" params={{ deviceId: entityId }} {...inRow}>
        {entityId}
      </Link>
    );
  }
  if (entityType === "key") {
    return (
      <Link to="/keys" search={{ key: entityId }} {...inRow}>
        {entityId}
      </Link>
    );
  }
  return <>{entityId}</>;
};

export const Entity = (subject: Subject) => (
  <>
    <span className="muted">{text.about[subject.entityType]}</span>{" "}
    <span className="mono">
      <Shown {...subject} />
    </span>
  </>
);
