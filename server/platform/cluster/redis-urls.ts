// What REDIS_URL names: one Redis, the sentinels that know which Redis is the master, or members of a cluster.
//   redis://user:password@redis1:6379/0            rediss:// over TLS
//   redis-sentinel://user:password@sentinel1:26379,sentinel2:26379/0?master=mymaster&sentinelPassword=…    rediss-sentinel:// over TLS
//   redis-cluster://user:password@redis1:6379,redis2:6379                                                  rediss-cluster:// over TLS
const PARTS = /^(rediss?)-(sentinel|cluster):\/\/(?:([^@/?#]*)@)?([^/?#]*)(\/\d*)?(?:\?([^#]*))?$/;
const PORTS = { sentinel: 26_379, cluster: 6_379 } as const;
const PARAMETERS: ReadonlySet<string> = new Set(["master", "sentinelUsername", "sentinelPassword"]);

export interface RedisPlace {
  /** The sentinels' own URLs; none for a Redis without them. */
  readonly sentinels: readonly string[];
  /** The name of the master among the sentinels. */
  readonly master: string;
  /** The URLs of some members of a cluster, which name the others; none for a Redis that is no cluster. */
  readonly members: readonly string[];
  /** The URL of the Redis at an address that a sentinel or a member named. */
  at(host: string, port: string): string;
}

const single = (url: string): RedisPlace => {
  if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol))
    throw new Error("must be a URL that begins with redis://, rediss://, redis-sentinel:// or redis-cluster://");
  if (new URL(url).hostname.includes(","))
    throw new Error("names several servers: name their sentinels with redis-sentinel://, or the members of a cluster with redis-cluster://");
  return { sentinels: [], master: "", members: [], at: () => url };
};

const loginOf = (user: string | null, password: string | null): string =>
  user === null && password === null ? "" : `${encodeURIComponent(user ?? "")}:${encodeURIComponent(password ?? "")}@`;

/** Throws a sentence that says what is wrong. */
export const redisPlaceOf = (url: string): RedisPlace => {
  const [whole, scheme, kind, ownLogin, hosts = "", database = "/", query = ""] = PARTS.exec(url) ?? [];
  if (whole === undefined) return single(url);
  const isCluster = kind === "cluster";
  const parameters = new URLSearchParams(query);
  const unknown = [...parameters.keys()].find((name) => isCluster || !PARAMETERS.has(name));
  if (unknown !== undefined) throw new Error(`has no parameter ${unknown}`);
  if (isCluster && !/^\/0?$/.test(database)) throw new Error("names a database, but a cluster has only database 0");
  const login = ownLogin === undefined ? "" : `${ownLogin}@`;
  const asked = isCluster ? login : loginOf(parameters.get("sentinelUsername"), parameters.get("sentinelPassword"));
  const port = isCluster ? PORTS.cluster : PORTS.sentinel;
  const urls = hosts.split(",").map((host) => {
    const each = `${scheme}://${asked}${host}`;
    if (host === "" || !URL.canParse(each)) throw new Error(`names a ${isCluster ? "member" : "sentinel"} that is none: ${host === "" ? "nothing" : host}`);
    return new URL(each).port === "" ? `${each}:${port}` : each;
  });
  return {
    sentinels: isCluster ? [] : urls,
    master: parameters.get("master") ?? "mymaster",
    members: isCluster ? urls : [],
    at: (host, at) => `${scheme}://${login}${host.includes(":") ? `[${host}]` : host}:${at}${database}`,
  };
};
