// The icons of the console: our name, and that of Lucide's drawing. The build puts exactly these into two files.

/** The icons of the frame, which every first screen loads. */
export const ICONS = {
  activity: "activity",
  add: "plus",
  alerts: "bell",
  anchor: "anchor",
  apps: "box",
  backups: "archive",
  catalogue: "store",
  check: "check",
  close: "x",
  commands: "terminal",
  cost: "coins",
  devices: "server",
  forward: "chevron-right",
  keys: "keyboard",
  more: "menu",
  network: "waypoints",
  overview: "layout-dashboard",
  person: "user",
  people: "users",
  platform: "network",
  rollouts: "git-merge",
  search: "search",
  settings: "settings",
  signOut: "log-out",
  unfold: "chevrons-up-down",
} as const;

/** A name that is not among them does not compile. */
export type IconName = keyof typeof ICONS;

/** The icons within pages. */
export const PAGE_ICONS = {
  address: "globe",
  agent: "anchor",
  backup: "archive",
  bookmark: "bookmark",
  copy: "copy",
  edit: "pencil",
  ellipsis: "ellipsis",
  filter: "list-filter",
  info: "info",
  key: "key",
  list: "list-checks",
  open: "external-link",
  restart: "rotate-cw",
  start: "play",
  system: "server",
  tag: "tag",
  time: "clock",
  undo: "undo-2",
  update: "download",
  warning: "triangle-alert",
} as const;
export type PageIconName = keyof typeof PAGE_ICONS;
