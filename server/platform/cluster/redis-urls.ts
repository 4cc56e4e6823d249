// What REDIS_URL names: one Redis, or the sentinels that know which Redis is the master.
//   redis://user:password@redis1:6379/0            rediss:// over TLS
//   redis-sentinel://user:password@sentinel1:26379,sentinel2:26379/0?master=mymaster&sentinelPassword=…    rediss-sentinel:// over TLS
const PARTS = /^(rediss?)-sentinel:\/\/(?:([^@/?#]*)@)?([^/?#]*)(\/\d*)?(?:\?([^#]*))?$/;
const SENTINEL_PORT = 26_379;
const PARAMETERS: ReadonlySet<string> = new Set(["master", "sentinelUsername", "sentinelPassword"]);

export interface RedisPlace {
  /** The sentinels' own URLs; none for a Redis without them. */
  readonly sentinels: readonly string[];
  /** The name of the master among the sentinels. */
  readonly master: string;
  /** The URL of the Redis at an address that a sentinel named. */
  at(host: string, port: string): string;
}

const single = (url: string): RedisPlace => {
  if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol))
    throw new Error("must be a URL that begins with redis://, rediss:// or redis-sentinel://; clusters are not supported");
  if (new URL(url).hostname.includes(","))
    throw new Error("names several servers: name their sentinels, with redis-sentinel://, as clusters are not supported");
  return { sentinels: [], master: "", at: () => url };
};

/** Throws a sentence that says what is wrong. */
export const redisPlaceOf = (url: string): RedisPlace => {
  const [whole, scheme, login, places = "", database = "/", query = ""] = PARTS.exec(url) ?? [];
  if (whole === undefined) return single(url);
  const parameters = new URLSearchParams(query);
  const unknown = [...parameters.keys()].find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined) throw new Error(`has no parameter ${unknown}`);
  const [user = "", password = ""] = ["sentinelUsername", "sentinelPassword"].map((name) => encodeURIComponent(parameters.get(name) ?? ""));
  const sentinels = places.split(",").map((place) => {
    const sentinel = `${scheme}://${user === "" && password === "" ? "" : `${user}:${password}@`}${place}`;
    if (place === "" || !URL.canParse(sentinel)) throw new Error(`names a sentinel that is none: ${place === "" ? "nothing" : place}`);
    return new URL(sentinel).port === "" ? `${sentinel}:${SENTINEL_PORT}` : sentinel;
  });
  return {
    sentinels,
    master: parameters.get("master") ?? "mymaster",
    at: (host, port) => `${scheme}://${login === undefined ? "" : `${login}@`}${host.includes(":") ? `[${host}]` : host}:${port}${database}`,
  };
};
