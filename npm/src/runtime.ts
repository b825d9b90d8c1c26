/** The runner: where it is, and what it is started with. */

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { delimiter, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

import { SandboxError } from "./errors.js";

/** The options of a sandbox. Numbers of sizes are bytes, and those of times seconds. */
export interface SandboxOptions {
  /**
   * The directories and files of the host that commands see, and how: "ro", "rw" or "overlay";
   * another path comes before that, as "/project:ro".
   */
  volumes?: Record<string, string>;
  /** The hosts that may be reached, as "example.org:443". Without it there is no network. */
  allow?: string[];
  /** "agent" (the default), "build", "readonly", "untrusted", or a file. */
  policy?: string;
  memory?: string | number;
  cpu?: string | number;
  processes?: number;
  openFiles?: number;
  disk?: string | number;
  /** Variables of each command. None of this process is passed on. */
  env?: Record<string, string>;
  /** Where commands start: this process's directory if it lies in a volume, unless given. */
  workdir?: string;
  /** "host": commands use the host's network. */
  network?: "none" | "host";
  /** Seconds after which a sandbox ends that nobody has used. */
  idle?: number;
  /** The directory with the tools. */
  image?: string;
  tmpfs?: string[];
  hostname?: string;
  publish?: string[];
  readOnly?: boolean;
  mounts?: "auto" | "bind" | "kernel";
  /** The program that runs commands given as texts: "bash" unless given. */
  shell?: string;
  /** Seconds that the start may take: 120 unless given. */
  startTimeout?: number;
  /** Seconds that a request may take: 60 unless given. A command has no limit but its own. */
  requestTimeout?: number;
}

/** Limits of a command, within those of its sandbox. */
export interface Limits {
  memory?: string | number;
  cpu?: string | number;
  processes?: number;
}

/** The file of lind-boot: that of LIND_BOOT, that in LIND_HOME/bin, or the one of PATH. */
export function program(): string {
  const { LIND_BOOT, LIND_HOME, PATH } = process.env;
  if (LIND_BOOT) return LIND_BOOT;
  const folders = [...(LIND_HOME ? [join(LIND_HOME, "bin")] : []), ...(PATH ?? "").split(delimiter)];
  const found = folders.map((folder) => join(folder, "lind-boot")).find((file) => existsSync(file));
  if (found === undefined) throw new SandboxError("lind-boot is not there: install it, or set LIND_BOOT to its file or LIND_HOME to its directory");
  return found;
}

/** A name for a session that no other has. */
export function newName(): string {
  return `node-${process.pid}-${randomBytes(4).toString("hex")}`;
}

/** Limits by the names that sessions know. */
export function limits(given: Limits & Pick<SandboxOptions, "openFiles" | "disk">): Record<string, string> {
  const all: [string, string | number | undefined, number, string][] = [
    ["memory", given.memory, 1, "B"],
    ["cpu", given.cpu, 1000, "ms"],
    ["cages", given.processes, 1, ""],
    ["files", given.openFiles, 1, ""],
    ["disk", given.disk, 1, "B"],
  ];
  const set = all.flatMap(([name, amount, times, unit]): [string, string][] => {
    if (amount === undefined) return [];
    return [[name, typeof amount === "string" ? amount : `${Math.round(amount * times)}${unit}`]];
  });
  return Object.fromEntries(set);
}

/** The words of `lind-boot session start` for these options. */
export function words(options: SandboxOptions): string[] {
  const volumes = Object.entries(options.volumes ?? {});
  const many = { allow: options.allow, tmpfs: options.tmpfs, publish: options.publish };
  const pairs: [string, string | undefined][] = [
    ...volumes.map(([host, how]): [string, string] => ["volume", `${host}:${how}`]),
    ...trusted(volumes.map(([host]) => host)).map((place): [string, string] => ["keep", place]),
    ...Object.entries(many).flatMap(([name, values]) => (values ?? []).map((value): [string, string] => [name, value])),
    ["policy", options.policy],
    ["workdir", options.workdir],
    ["network", options.network],
    ["hostname", options.hostname],
    ["mounts", options.mounts],
    ["image", options.image],
    ["idle", options.idle === undefined ? undefined : `${Math.round(options.idle * 1000)}ms`],
    ...Object.entries(limits(options)),
  ];
  const given = pairs.filter(([, value]) => value !== undefined).map(([name, value]) => `--${name}=${value}`);
  return [...given, ...(options.readOnly ? ["--read-only"] : [])];
}

/**
 * The places in these directories that this program takes its code from: a command that could
 * change them would change what runs outside.
 */
function trusted(volumes: string[]): string[] {
  const real = (path: string) => (existsSync(path) ? realpathSync(path) : resolve(path));
  const places = [real(program()), real(process.execPath), real(fileURLToPath(new URL("..", import.meta.url)))];
  const isBelow = (place: string, folder: string) => place.startsWith(folder.endsWith(sep) ? folder : folder + sep);
  return places.filter((place) => volumes.some((volume) => isBelow(place, real(volume))));
}

/** A program of the host that has ended. */
export interface Ended {
  status: number;
  out: string;
  errors: string;
}

/** Runs lind-boot without input. */
export function execute(given: string[], seconds: number): Promise<Ended> {
  return new Promise((done, failed) => {
    const options = { timeout: seconds * 1000, maxBuffer: 256 << 20 };
    const child = execFile(program(), given, options, (error, out, errors) => {
      if (error !== null && typeof error.code === "string") failed(new SandboxError(`lind-boot cannot be run: ${error.message}`));
      else done({ status: error === null ? 0 : Number(error.code ?? 125), out, errors });
    });
    child.stdin?.end();
  });
}

/** The reason in what lind-boot has said. */
export function why(said: string): string {
  return said.trim().replace(/^lind-boot: /, "");
}
