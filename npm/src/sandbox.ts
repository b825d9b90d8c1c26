/** A sandbox. */

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";

import { CommandError, RequestError, shown } from "./errors.js";
import { Files } from "./files.js";
import { list, number, object, text, word, type Keys } from "./messages.js";
import { Process, bounded } from "./process.js";
import { readApplied, readDenial, readDifference, type Applied, type Denial, type Difference, type Result } from "./results.js";
import { limits, why, type Limits, type SandboxOptions } from "./runtime.js";
import { Session } from "./session.js";

/** A text, which a shell runs, or a program with its arguments. */
export type Command = string | (string | Uint8Array)[];

/** What a command starts with. */
export interface StartOptions extends Limits {
  /** Variables besides those of the sandbox. */
  env?: Record<string, string>;
  cwd?: string;
  /** Seconds after which it is killed. */
  timeout?: number;
  /** Output beyond so many bytes is dropped. */
  maxOutput?: number;
  /** A terminal of its own. */
  pty?: { columns: number; rows: number };
}

/** What a command that is waited for has besides. */
export interface RunOptions extends Omit<StartOptions, "pty"> {
  input?: string | Uint8Array;
  /** A command that fails is a CommandError. */
  check?: boolean;
  onStdout?: (data: Buffer) => void;
  onStderr?: (data: Buffer) => void;
}

/** The directory of an overlay, where there are several. */
export interface Of {
  volume?: string;
}

/**
 * Directories of the host that commands see, and what they may do. It starts when it is first used,
 * and ends when it is closed, or when this process ends.
 */
export class Sandbox {
  /** Its files. */
  readonly files: Files;
  readonly #session: Session;

  constructor(options: SandboxOptions = {}) {
    this.#session = new Session(options);
    this.files = new Files(this.#session);
  }

  /** Connects to a session that runs already. To close it leaves it running; `stop` ends it. */
  static async connect(name: string, options: Pick<SandboxOptions, "env" | "shell" | "requestTimeout"> = {}): Promise<Sandbox> {
    const sandbox = new Sandbox(options);
    await sandbox.#session.find(name);
    return sandbox;
  }

  /** Starts it, and returns the name of its session, for `lind-boot session`. */
  async open(): Promise<string> {
    return (await this.#session.open()).name;
  }

  /** Ends it with all that runs in it. If it was connected to, it is left as it is. */
  close(): Promise<void> {
    return this.#session.close(false);
  }

  /** Ends it with all that runs in it, also if it was connected to. */
  stop(): Promise<void> {
    return this.#session.close(true);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Runs a command, and waits for its end. */
  async run(command: Command, options: RunOptions = {}): Promise<Result> {
    const process = await this.#begin(command, options, options.input !== undefined);
    try {
      const { input } = options;
      const fed = input === undefined ? undefined : process.feed(typeof input === "string" ? Buffer.from(input) : input);
      const work = process.wait({ ...(options.onStdout && { onStdout: options.onStdout }), ...(options.onStderr && { onStderr: options.onStderr }) });
      // The session kills it at its time. A session that does not answer is not waited for much longer.
      const result = await bounded(process, options.timeout === undefined ? undefined : options.timeout + 600, work);
      await fed;
      if (options.check && !result.ok) throw new CommandError(process.command, result);
      return result;
    } finally {
      process.close();
    }
  }

  /** Starts a command. Close its process when it is not needed any more. */
  start(command: Command, options: StartOptions = {}): Promise<Process> {
    return this.#begin(command, options, true);
  }

  async #begin(command: Command, options: StartOptions, stdin: boolean): Promise<Process> {
    const { options: own } = this.#session;
    const words = typeof command === "string" ? [own.shell ?? "bash", "-c", command] : command;
    const given = Object.entries({ ...own.env, ...options.env }).map(([name, value]) => `${name}=${value}`);
    const set = limits(options);
    const keys: Keys = {
      do: "exec",
      argv: words.map(word),
      env: given,
      workdir: options.cwd,
      timeout: options.timeout,
      limits: Object.keys(set).length > 0 ? set : undefined,
      stdin: stdin && options.pty === undefined,
      max_output: options.maxOutput,
      terminal: options.pty && { files: [0, 1, 2], size: [options.pty.rows, options.pty.columns] },
    };
    const connection = await this.#session.connect();
    const name = typeof command === "string" ? command : words.map(String).join(" ");
    const process = new Process(this.#session, connection, name, options.maxOutput);
    try {
      await connection.send(keys);
      return await process.begin();
    } catch (error) {
      process.close();
      throw error;
    }
  }

  /**
   * Allows something more, for the next call of each command: a host, as "example.org:443", or a
   * rule. Returns the number of the rule.
   */
  async allow(rule: string, options: { once?: boolean; seconds?: number } = {}): Promise<number> {
    return number((await this.#session.ask({ do: "allow", rule, once: options.once, for: options.seconds })).keys, "number");
  }

  /** Denies something that is allowed. */
  async deny(rule: string, options: { seconds?: number } = {}): Promise<number> {
    return number((await this.#session.ask({ do: "deny", rule, for: options.seconds })).keys, "number");
  }

  /** Takes a rule back, by its text or its number. */
  async revoke(rule: string | number): Promise<void> {
    await this.#session.ask({ do: "revoke", rule });
  }

  /** The calls that were denied, of those that are kept; with `since` those behind that number. */
  async denials(options: { since?: number } = {}): Promise<Denial[]> {
    const found: Denial[] = [];
    for (let since = options.since ?? 0; ; ) {
      const { keys } = await this.#session.ask({ do: "denials", since });
      found.push(...list(keys["denials"]).map(readDenial));
      if (keys["more"] !== true) return found;
      since = number(keys, "last");
    }
  }

  /** The changes in an overlay: all, or those of some paths below its directory. */
  async diff(paths: string[] = [], of: Of = {}): Promise<Difference[]> {
    return list(await this.#overlay("diff", of, paths)).map(readDifference);
  }

  /**
   * Makes the changes in the directory itself. With `force` also where its own files have changed
   * meanwhile.
   */
  async apply(paths: string[] = [], options: Of & { force?: boolean; dryRun?: boolean } = {}): Promise<Applied> {
    const chosen = [...(options.force ? ["--force"] : []), ...(options.dryRun ? ["--dry-run"] : [])];
    return readApplied(await this.#overlay("apply", options, paths, chosen));
  }

  /** Throws the changes away, and returns them. */
  async discard(paths: string[] = [], of: Of = {}): Promise<Difference[]> {
    return list(object(await this.#overlay("discard", of, paths))["discarded"]).map(readDifference);
  }

  /** Keeps the present state of an overlay under a name, for `rollback`. Returns the name. */
  async snapshot(name = `snapshot-${randomBytes(4).toString("hex")}`, of: Of = {}): Promise<string> {
    return text(object(await this.#overlay("snapshot", of, [name]))["snapshot"]);
  }

  /** Returns an overlay to a snapshot. */
  async rollback(name: string, of: Of = {}): Promise<void> {
    await this.#overlay("rollback", of, [name]);
  }

  async #overlay(verb: string, of: Of, given: string[], chosen: string[] = []): Promise<unknown> {
    const options = ["--json", ...chosen, ...(of.volume === undefined ? [] : [`--volume=${resolve(of.volume)}`])];
    const { status, out, errors } = await this.#session.command(verb, options, given);
    // `apply` prints what it has refused, and fails.
    if (status !== 0 && !(verb === "apply" && out !== "")) throw new RequestError(shown(why(errors)), status);
    return JSON.parse(out) as unknown;
  }
}

/** Runs a command in a sandbox of its own. */
export async function run(command: Command, options: SandboxOptions & { run?: RunOptions } = {}): Promise<Result> {
  const sandbox = new Sandbox(options);
  try {
    return await sandbox.run(command, options.run);
  } finally {
    await sandbox.close();
  }
}
