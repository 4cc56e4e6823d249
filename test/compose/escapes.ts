// The ways out of a Compose project that are known: each is refused by gateway and agent, with the same code and path.
import { stringify } from "yaml";

type Part = Readonly<Record<string, unknown>>;

export interface Escape {
  /** A person's words: "refuses …". */
  readonly way: string;
  /** What the service `web` has beside its image. */
  readonly service?: Part;
  /** What the project has beside its services. */
  readonly rest?: Part;
  /** Of the property that is refused. */
  readonly path: string;
  /** `docker compose config` reads it and then leaves it out, so only the written project shows it. */
  readonly resolvedAway?: true;
}

const variable = (name: string): string => `$\{${name}}`;
const web = (way: string, property: string, value: unknown, more: Partial<Escape> = {}): Escape => ({
  way,
  service: { [property]: value },
  path: `services.web.${property}`,
  ...more,
});

export const ESCAPES: readonly Escape[] = [
  web("all privileges", "privileged", true),
  web("more capabilities", "cap_add", ["SYS_ADMIN"]),
  web("a device of the host", "devices", ["/dev/kmsg:/dev/kmsg"]),
  web("rules for devices", "device_cgroup_rules", ["a *:* rwm"]),
  web("the graphics processors", "gpus", "all"),
  web("reserved devices", "deploy", { resources: { reservations: { devices: [{ capabilities: ["gpu"], driver: "nvidia", count: 1 }] } } }),
  web("no seccomp profile", "security_opt", ["seccomp:unconfined"]),
  web("another runtime", "runtime", "runc"),
  web("a control group of the host", "cgroup_parent", "/"),
  web("the host's control groups", "cgroup", "host"),
  web("the host's network", "network_mode", "host"),
  web("the network of another container", "network_mode", "container:other"),
  web("the host's processes", "pid", "host"),
  web("the processes of another container", "pid", "container:other"),
  web("the host's shared memory", "ipc", "host"),
  web("the shared memory of another container", "ipc", "container:other"),
  web("the host's name", "uts", "host"),
  web("the host's users", "userns_mode", "host"),
  web("a group of the host", "group_add", ["docker"]),
  web("the engine's socket", "use_api_socket", true),
  web("a program of the host that provides the service", "provider", { type: "program", options: { any: "thing" } }),
  web("a hook with all privileges", "post_start", [{ command: ["true"], user: "root", privileged: true }]),
  web("a hook before it stops", "pre_stop", [{ command: ["true"], privileged: true }]),
  web("an image that is built from the host's files", "build", { context: "/" }),
  web("the volumes of another container", "volumes_from", ["container:other:rw"]),
  web("a folder of the host", "volumes", ["/etc:/host/etc:ro"], { path: "services.web.volumes.0" }),
  web("a folder beside the project", "volumes", ["./data:/data"], { path: "services.web.volumes.0" }),
  web("a folder of the host in the long form", "volumes", [{ type: "bind", source: "/", target: "/host" }], { path: "services.web.volumes.0" }),
  web("the socket of Docker", "volumes", ["/var/run/docker.sock:/var/run/docker.sock"], { path: "services.web.volumes.0" }),
  web("memory of the host in place of a volume", "volumes", [{ type: "tmpfs", target: "/data" }], { path: "services.web.volumes.0" }),
  web("a file of variables", "env_file", ["./variables"], { resolvedAway: true }),
  web("a file of labels", "label_file", ["./variables"], { resolvedAway: true }),
  web("labels that another program obeys", "labels", { "traefik.enable": "true" }),
  web("a service of another file", "extends", { file: "./other.yaml", service: "other" }, { resolvedAway: true }),
  web("a variable of the host without a value", "environment", { HOME: null }, { path: "services.web.environment.HOME", resolvedAway: true }),
  web("a variable of the host", "environment", { LEAK: variable("HOME") }, { path: "services.web.environment.LEAK", resolvedAway: true }),
  web("a variable of the host with a default", "command", [variable("DOCKER_HOST:-none")], { path: "services.web.command.0", resolvedAway: true }),
  web("the address of the host", "extra_hosts", { gateway: "host-gateway" }),
  web("a container of another project", "external_links", ["other:other"]),
  web("settings of the kernel", "sysctls", { "net.ipv4.ip_forward": "1" }),
  web("to survive when memory is short", "oom_score_adj", -1_000),
  web("a log driver that calls out", "logging", { driver: "syslog", options: { "syslog-address": "tcp://192.0.2.1:514" } }),
  web("an address of the host for its port", "ports", ["127.0.0.1:8080:80"], { path: "services.web.ports.0" }),
  {
    way: "a volume that is a folder of the host",
    service: { volumes: ["data:/data"] },
    rest: { volumes: { data: { driver: "local", driver_opts: { type: "none", o: "bind", device: "/" } } } },
    path: "volumes.data.driver",
  },
  {
    way: "a volume on another machine",
    service: { volumes: ["data:/data"] },
    rest: { volumes: { data: { driver_opts: { type: "nfs", o: "addr=192.0.2.1,rw", device: ":/" } } } },
    path: "volumes.data.driver_opts",
  },
  {
    way: "a volume that exists already",
    service: { volumes: ["data:/data"] },
    rest: { volumes: { data: { external: true } } },
    path: "volumes.data.external",
  },
  {
    way: "the volume of another project by its name",
    service: { volumes: ["data:/data"] },
    rest: { volumes: { data: { name: "other_data" } } },
    path: "volumes.data.name",
  },
  { way: "a network that exists already", service: { networks: ["other"] }, rest: { networks: { other: { external: true } } }, path: "networks" },
  { way: "the network of another project by its name", rest: { networks: { default: { name: "other_default" } } }, path: "networks" },
  {
    way: "a network on the host's own card",
    service: { networks: ["wire"] },
    rest: { networks: { wire: { driver: "macvlan", driver_opts: { parent: "eth0" } } } },
    path: "networks",
  },
  { way: "a secret from the agent's environment", service: { secrets: ["one"] }, rest: { secrets: { one: { environment: "HOME" } } }, path: "secrets" },
  { way: "a secret from a file of the host", service: { secrets: ["one"] }, rest: { secrets: { one: { file: "/etc/shadow" } } }, path: "secrets" },
  { way: "a configuration from a file of the host", service: { configs: ["one"] }, rest: { configs: { one: { file: "/etc/passwd" } } }, path: "configs" },
  { way: "a configuration from the agent's environment", service: { configs: ["one"] }, rest: { configs: { one: { environment: "HOME" } } }, path: "configs" },
  { way: "another file", rest: { include: ["./other.yaml"] }, path: "include", resolvedAway: true },
  { way: "the name of another project", rest: { name: "other" }, path: "name", resolvedAway: true },
  { way: "a model that the host runs", rest: { models: { one: { model: "example/model" } } }, path: "models", resolvedAway: true },
  { way: "a part that only some readers see", rest: { "x-more": { privileged: true } }, path: "x-more" },
];

const IMAGE = "busybox:1.35.0";
export const written = ({ service = {}, rest = {} }: Partial<Escape>): string =>
  stringify({ services: { web: { image: IMAGE, restart: "unless-stopped", ...service } }, ...rest });

/** As Compose resolves it, where it does not change the form. */
export const resolved = ({ service = {}, rest = {} }: Partial<Escape>, name: string): Part => ({
  name,
  networks: { default: { name: `${name}_default`, ipam: {} } },
  services: { web: { command: null, entrypoint: null, image: IMAGE, networks: { default: null }, restart: "unless-stopped", ...service } },
  ...rest,
});
