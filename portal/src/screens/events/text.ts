// The sentences of the event log.
export const text = {
  title: "Events",
  filter: "Filter events",
  none: "What happens in this tenant appears here as it happens.",
  noMatch: "No event matches these filters.",
  one: "Event",
  close: "Close the event",
  data: "Data",
  sameSubject: "Events of the same subject",
  sameType: "Events of the same type",
  alike: "Events alike",
} as const;
