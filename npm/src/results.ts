/** What a sandbox answers. */

import { list, number, object, text, type Keys } from "./messages.js";

/** A call that was denied. */
export interface Denial {
  id: number;
  message: string;
  grate: string;
  rule: string;
  program: string;
  arguments: string;
  /** The option or rule that would allow it, if there is one. */
  hint: string | null;
  command: number | null;
  times: number;
}

/** How a command has ended. */
export interface Result {
  /** The exit status, or 128+n if signal n has ended it. */
  exitCode: number;
  signal: number | null;
  ok: boolean;
  stdout: string;
  stderr: string;
  stdoutBytes: Buffer;
  stderrBytes: Buffer;
  /** The seconds of `timeout`, if it was killed for that. */
  timedOut: number | null;
  /** Bytes of output that were not kept. */
  dropped: number;
  /** How many calls were denied, and the first of them. */
  denied: number;
  denials: Denial[];
  /** Seconds. */
  wall: number;
}

/** A piece of output. */
export interface Output {
  stream: "stdout" | "stderr" | "terminal";
  data: Buffer;
  /** How many bytes before these are lost. */
  lost: number;
}

/** A file. */
export interface FileInfo {
  name: string;
  type: string;
  size: number;
  mode: number;
  mtime: Date;
  uid: number;
  gid: number;
  /** Where a link leads. */
  target: string | null;
}

/** A change in an overlay. */
export interface Difference {
  kind: string;
  path: string;
  type: string;
  size: number | null;
}

/** What `apply` has done. */
export interface Applied {
  applied: Difference[];
  refused: { change: Difference; why: string }[];
  finished: boolean;
}

const optional = (value: unknown) => (value === null || value === undefined ? null : text(value));

export function readDenial(value: unknown): Denial {
  const keys = object(value);
  return {
    id: number(keys, "id"),
    message: text(keys["message"]),
    grate: text(keys["grate"]),
    rule: text(keys["rule"]),
    program: text(keys["program"]),
    arguments: text(keys["arguments"]),
    hint: optional(keys["hint"]),
    command: typeof keys["command"] === "number" ? keys["command"] : null,
    times: number(keys, "times"),
  };
}

export function readEnd(value: unknown, stdoutBytes: Buffer, stderrBytes: Buffer, dropped: number): Result {
  const keys = object(value);
  const signal = keys["signal"] === null ? null : number(keys, "signal");
  const exitCode = signal === null ? number(keys, "status") : 128 + signal;
  return {
    exitCode,
    signal,
    ok: exitCode === 0,
    stdout: stdoutBytes.toString(),
    stderr: stderrBytes.toString(),
    stdoutBytes,
    stderrBytes,
    timedOut: keys["timed_out"] === null ? null : number(keys, "timed_out"),
    dropped: dropped + (typeof keys["dropped"] === "number" ? keys["dropped"] : 0),
    denied: typeof keys["denied"] === "number" ? keys["denied"] : 0,
    denials: list(keys["denials"] ?? []).map(readDenial),
    wall: number(keys, "wall"),
  };
}

export function readFile(value: unknown): FileInfo {
  const keys = object(value);
  const [size, mode, uid, gid] = ["size", "mode", "uid", "gid"].map((key) => number(keys, key)) as [number, number, number, number];
  const mtime = new Date(number(keys, "mtime") * 1000);
  return { name: text(keys["name"]), type: text(keys["type"]), size, mode, mtime, uid, gid, target: optional(keys["target"]) };
}

export function readDifference(value: unknown): Difference {
  const keys = object(value);
  return { kind: text(keys["kind"]), path: text(keys["path"]), type: text(keys["type"]), size: typeof keys["size"] === "number" ? keys["size"] : null };
}

export function readApplied(value: unknown): Applied {
  const keys = object(value);
  const refused = list(keys["refused"]).map((entry) => ({ change: readDifference(entry), why: text((entry as Keys)["why"]) }));
  return { applied: list(keys["applied"]).map(readDifference), refused, finished: keys["finished"] === true };
}
