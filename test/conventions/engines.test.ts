// No package of ours warns at the install that it does not support a Node version which we support.
import { readFileSync } from "node:fs";
import semver from "semver";
import { expect, test } from "vitest";

interface Locked {
  readonly engines?: { readonly node?: string };
  readonly optional?: boolean;
}
interface Lock {
  readonly packages: Readonly<Record<string, Locked>>;
}

const { packages } = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as Lock;
const ours = packages[""]?.engines?.node ?? "";
/** The least of each major version that has long-term support, and its newest that we have seen. */
const SUPPORTED = ["20.19.0", "20.20.2", "22.13.0", "22.23.3", "24.0.0", "24.21.0"];

test("the versions of Node that we name are those that this file tries", () => {
  expect(SUPPORTED.filter((version) => !semver.satisfies(version, ours))).toEqual([]);
  expect(["20.18.0", "21.7.3", "22.12.0", "23.11.1"].filter((version) => semver.satisfies(version, ours))).toEqual([]);
});

// npm leaves out an optional package that does not fit and says nothing. uws-pack asks for Node 22 although it carries binaries for 20: the lock says
// 20 by hand, and `npm install` keeps that until the version changes.
test("npm ci says nothing about the engines of a package on any Node version that we support", () => {
  const refusing = Object.entries(packages).flatMap(([path, { engines, optional = false }]) =>
    SUPPORTED.filter((version) => !optional && engines?.node !== undefined && !semver.satisfies(version, engines.node)).map(
      (version) =>
        `${path} asks for ${engines?.node}, so Node ${version} gets a warning: use another version, override the package, or state in the lock what it runs on`,
    ),
  );
  expect(refusing).toEqual([]);
});
