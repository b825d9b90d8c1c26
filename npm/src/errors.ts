/** The errors of this package. */

import type { Result } from "./results.js";

/** Any error of this package. */
export class LindError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The sandbox cannot be started, has ended, or does not answer. */
export class SandboxError extends LindError {}

/** The session refuses a request. */
export class RequestError extends LindError {
  constructor(
    message: string,
    /** The status with which a command line client would exit. */
    readonly status: number = 125,
    /** A name such as "ENOENT", if the error is one of a call. */
    readonly code: string | null = null,
  ) {
    super(message);
  }
}

/**
 * A command cannot be started: `status` is 127 for a program that does not exist, 126 for one that
 * cannot be executed.
 */
export class CommandNotStarted extends RequestError {}

/** An operation on a file failed. `code` is as in errors of node:fs. */
export class FileError extends RequestError {
  constructor(
    message: string,
    code: string,
    readonly path: string,
  ) {
    super(message, 125, code);
  }
}

/** The time was over. `result` is there if the command was killed for it. */
export class TimeoutExpired extends LindError {
  constructor(
    what: string,
    readonly seconds: number,
    readonly result: Result | null = null,
  ) {
    super(`${shown(what)}: not done after ${seconds} seconds`);
  }
}

/** A command with `check: true` has failed. */
export class CommandError extends LindError {
  constructor(
    command: string,
    readonly result: Result,
  ) {
    const end = result.signal === null ? `has exited with status ${result.exitCode}` : `was ended by signal ${result.signal}`;
    const last = result.stderr.trimEnd().split("\n").at(-1)?.slice(0, 500) ?? "";
    super(`${shown(command)} ${end}${last && `: ${shown(last)}`}`);
  }
}

/** Text of a guest as it can be printed: escaped where a terminal would act on it. */
export function shown(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}
