// The picture of an application: a drawing and the colour of its tile.
import { z } from "zod";

/** Names of Lucide's drawings, which the console has. */
export const APP_ICONS = [
  ...["activity", "archive", "bell", "book-open", "bookmark", "box", "calendar", "camera", "chart-column", "chart-line", "clapperboard", "clipboard"],
  ...["cloud", "code", "database", "eye", "file-text", "folder", "gamepad-2", "git-branch", "globe", "headphones", "house", "image", "key-round"],
  ...["library", "list-checks", "mail", "message-circle", "music", "newspaper", "package", "refresh-cw", "rss", "search", "shield", "sticky-note"],
  ...["utensils", "wallet", "workflow", "wrench"],
] as const;
export const AppIcon = z.enum(APP_ICONS).describe("A name of the icon set Lucide.");
export const APP_HUES = ["amber", "blue", "green", "red", "teal", "violet"] as const;
export const AppHue = z.enum(APP_HUES).describe("The colour of its tile.");
