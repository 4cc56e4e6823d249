// The servers of a database as libpq names them: postgres://gateway@db1:5432,db2:5432/mooring?target_session_attrs=read-write.
const PARTS = /^(postgres(?:ql)?:\/\/)(?:([^@/?#]*)@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?$/;
/** Parameters that the driver would pass on to the server, which knows nothing of them. */
const OF_LIBPQ = ["target_session_attrs", "load_balance_hosts"];
const WRITERS: ReadonlySet<string> = new Set(["read-write", "primary"]);

/** A URL for each server; throws a sentence that says what is wrong. */
export const urlsOf = (url: string): readonly string[] => {
  const [, scheme, login, places = "", path = "", query = ""] = PARTS.exec(url) ?? [];
  if (scheme === undefined) throw new Error("must be a URL that begins with postgres://");
  const parameters = new URLSearchParams(query);
  const wanted = parameters.get("target_session_attrs") ?? "read-write";
  if (!WRITERS.has(wanted)) throw new Error("target_session_attrs must be read-write or primary: the gateway writes");
  const isOurs = OF_LIBPQ.some((name) => parameters.has(name));
  for (const name of OF_LIBPQ) parameters.delete(name);
  // What nobody has to change stays as it was written.
  const kept = isOurs ? String(parameters) : query;
  const rest = `${path}${kept === "" ? "" : `?${kept}`}`;
  return places.split(",").map((place) => {
    const single = `${scheme}${login === undefined ? "" : `${login}@`}${place}${rest}`;
    if (!URL.canParse(single) || (places.includes(",") && place === "")) throw new Error(`names a server that is none: ${place === "" ? "nothing" : place}`);
    return single;
  });
};
