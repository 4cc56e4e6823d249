// Loads uWebSockets.js, whose binaries fit certain Node versions only, and says so when they do not.
// It reads its header limit from the environment while it loads, hence the assignment before the import.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";

const load = async () => {
  try {
    return await import("uWebSockets.js");
  } catch (cause) {
    throw new Error(
      `uWebSockets.js has no binary for Node ${process.versions.node} (ABI ${process.versions.modules}) on ${process.platform}-${process.arch}. ` +
        'Use Node 20 or 22, or point the dependency "uWebSockets.js" in package.json to the official GitHub package uNetworking/uWebSockets.js, whose newest release covers newer Node versions.',
      { cause },
    );
  }
};

export const uws = await load();

/** Not in its type declarations: keeps the header "uWebSockets: 20" out of answers and upgrades. The error pages of its parser keep their words. */
(uws as unknown as { readonly _cfg: (option: "silent") => void })._cfg("silent");
