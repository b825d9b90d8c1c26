/** A command that runs in a sandbox. */

import { within, type Connection } from "./connection.js";
import { CommandNotStarted, RequestError, SandboxError, TimeoutExpired } from "./errors.js";
import { number, object, pieces, text, wrong, type Message } from "./messages.js";
import { readEnd, type Output, type Result } from "./results.js";
import type { Session } from "./session.js";

/** How much output `wait` keeps, unless the command has a `maxOutput`. */
export const KEPT = 16 << 20;

/**
 * A command. Its output comes in pieces, by `for await`; `wait` collects what has not been read. It
 * ends when it is closed.
 */
export class Process {
  /** Its number, and its process in the sandbox. */
  id = 0;
  pid: number | null = null;
  /** How it has ended. */
  result: Result | null = null;
  readonly #session: Session;
  readonly #connection: Connection;
  readonly #most: number;
  readonly #unread: Output[] = [];
  readonly #kept: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
  #size = 0;
  #dropped = 0;
  #ended: unknown = null;

  /** @internal */
  constructor(
    session: Session,
    connection: Connection,
    readonly command: string,
    most: number | undefined,
  ) {
    this.#session = session;
    this.#connection = connection;
    this.#most = most ?? KEPT;
  }

  /** @internal */
  async begin(): Promise<this> {
    const keys = object((await this.#receive()).keys["started"]);
    this.id = number(keys, "id");
    this.pid = typeof keys["pid"] === "number" ? keys["pid"] : null;
    return this;
  }

  /** The next piece of output, or null when the command has ended. */
  async read(): Promise<Output | null> {
    for (;;) {
      const output = this.#unread.shift();
      if (output !== undefined) return output;
      if (this.#ended !== null) return null;
      this.#hear(await this.#receive());
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Output> {
    for (let output = await this.read(); output !== null; output = await this.read()) yield output;
  }

  /** Waits for the end. Output of a terminal counts as standard output. */
  async wait(options: { onStdout?: (data: Buffer) => void; onStderr?: (data: Buffer) => void } = {}): Promise<Result> {
    for await (const { stream, data } of this) {
      const room = Math.max(this.#most - this.#size, 0);
      this.#kept[stream === "stderr" ? "stderr" : "stdout"].push(data.subarray(0, room));
      this.#size += Math.min(data.length, room);
      this.#dropped += Math.max(data.length - room, 0);
      (stream === "stderr" ? options.onStderr : options.onStdout)?.(data);
    }
    this.result = readEnd(this.#ended, Buffer.concat(this.#kept.stdout), Buffer.concat(this.#kept.stderr), this.#dropped);
    return this.result;
  }

  /**
   * Writes to the command's standard input, or types at its terminal. Waits until there is room.
   */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    for (const piece of pieces(bytes)) await this.#session.ask({ do: "input", id: this.id }, piece);
  }

  /** Ends the command's standard input. At a terminal it is ^D. */
  async closeStdin(): Promise<void> {
    await this.#session.ask({ do: "input", id: this.id, close: true });
  }

  /** Changes the size of its terminal. */
  async resize(size: { columns: number; rows: number }): Promise<void> {
    await this.#session.ask({ do: "resize", id: this.id, size: [size.rows, size.columns] });
  }

  /**
   * Sends a signal, by its number or its name. With `group` it goes to those in front on its
   * terminal, or its process group.
   */
  async signal(signal: number | string, group = false): Promise<void> {
    if (this.#ended === null) await this.#session.ask({ do: "signal", id: this.id, signal, group });
  }

  /** Kills the command. */
  kill(): Promise<void> {
    return this.signal(9);
  }

  /** Ends the command, if it runs still. */
  close(): void {
    this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /**
   * Has this written to the standard input while the output is read, and ends it then. @internal
   */
  async feed(data: Uint8Array): Promise<void> {
    try {
      for (const piece of pieces(data)) await this.#connection.send({ do: "input" }, piece);
      await this.#connection.send({ do: "input", close: true });
    } catch (error) {
      // The end of the command says more.
      if (!(error instanceof SandboxError)) throw error;
    }
  }

  async #receive(): Promise<Message> {
    try {
      return await this.#connection.receive();
    } catch (error) {
      this.close();
      if (error instanceof RequestError) throw new CommandNotStarted(error.message, error.status, error.code);
      throw error;
    }
  }

  #hear({ keys, body }: Message): void {
    if ("output" in keys) {
      const stream = text(keys["output"]);
      if (stream !== "stdout" && stream !== "stderr" && stream !== "terminal") throw wrong(`output of ${stream}`);
      this.#unread.push({ stream, data: body, lost: typeof keys["lost"] === "number" ? keys["lost"] : 0 });
    } else if ("ended" in keys) {
      this.#ended = object(keys["ended"]);
      this.close();
    }
  }
}

/** Waits for the end of a command within so many seconds, and kills it then. @internal */
export async function bounded(process: Process, seconds: number | undefined, work: Promise<Result>): Promise<Result> {
  const result = await within(process.command, seconds, work, () => process.close());
  if (result.timedOut !== null) throw new TimeoutExpired(process.command, result.timedOut, result);
  return result;
}
