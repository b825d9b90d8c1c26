/** The session that a sandbox is: its start, its end, and connections to it. */

import { Connection, within } from "./connection.js";
import { RequestError, SandboxError } from "./errors.js";
import { bundled } from "./images.js";
import { bytes, text, type Keys, type Message } from "./messages.js";
import { execute, newName, why, words, type SandboxOptions } from "./runtime.js";

/** How many connections wait for the next request. */
const SPARE = 4;

interface Started {
  name: string;
  socket: string;
  own: boolean;
}

/** A session. */
export class Session {
  #started: Promise<Started> | null = null;
  #closed = false;
  readonly #spare: Connection[] = [];

  constructor(readonly options: SandboxOptions) {}

  /** Starts it, unless it has been started. */
  open(): Promise<Started> {
    if (this.#closed) return Promise.reject(new SandboxError("the sandbox is closed"));
    this.#started ??= this.#start();
    return this.#started;
  }

  /** Takes a session that runs already. */
  async find(name: string): Promise<void> {
    const { status, out, errors } = await execute(["session", "ls", "--json"], this.#seconds);
    if (status !== 0) throw new SandboxError(`sessions cannot be listed: ${why(errors)}`);
    const found = (JSON.parse(out) as Keys[]).find((one) => one["name"] === name);
    if (found === undefined) throw new SandboxError(`no session ${name} runs: see \`lind-boot session ls\``);
    this.#started = Promise.resolve({ name, socket: text(found["socket"]), own: false });
  }

  async #start(): Promise<Started> {
    const seconds = this.options.startTimeout ?? 120;
    const image = this.options.image ?? (await bundled(seconds));
    const options = image === undefined ? this.options : { ...this.options, image };
    const given = ["session", "start", newName(), "--json", `--die-with-parent=${process.pid}`, ...words(options)];
    const { status, out, errors } = await execute(given, seconds);
    if (status !== 0) throw new SandboxError(`the sandbox was not started: ${why(errors) || `status ${status}`}`);
    const about = JSON.parse(out) as Keys;
    return { name: text(about["name"]), socket: bytes(about["socket"]).toString(), own: true };
  }

  /** A new connection. */
  async connect(): Promise<Connection> {
    return Connection.open((await this.open()).socket);
  }

  /** The answer to a request that has one. */
  ask(keys: Keys, body?: Uint8Array): Promise<Message> {
    return this.exchange([[keys, body]], (connection) => connection.receive());
  }

  /** The answer to a request with bytes, in as many messages as they need. */
  send(keys: Keys, bodies: Uint8Array[]): Promise<Message> {
    const messages = bodies.map((body, at): [Keys, Uint8Array] => [{ ...(at === 0 ? keys : {}), more: at + 1 < bodies.length }, body]);
    return this.exchange(messages, (connection) => connection.receive());
  }

  /** Sends messages, and reads what answers them. */
  async exchange<T>(messages: (readonly [Keys, (Uint8Array | undefined)?])[], read: (connection: Connection) => Promise<T>): Promise<T> {
    await this.open();
    const connection = this.#spare.pop() ?? (await this.connect());
    const work = async () => {
      for (const [keys, body] of messages) await connection.send(keys, body);
      return read(connection);
    };
    try {
      const done = await within(String(messages[0]?.[0]["do"]), this.#seconds, work(), () => connection.close());
      this.#keep(connection);
      return done;
    } catch (error) {
      // After the session's own error the connection takes the next request, unless messages are left.
      if (error instanceof RequestError && messages.length === 1) this.#keep(connection);
      else connection.close();
      throw error;
    }
  }

  #keep(connection: Connection): void {
    if (this.#spare.length < SPARE && !this.#closed) this.#spare.push(connection);
    else connection.close();
  }

  get #seconds(): number {
    return this.options.requestTimeout ?? 60;
  }

  /** Runs a command of lind-boot on it. */
  async command(verb: string, options: string[], given: string[]): Promise<{ status: number; out: string; errors: string }> {
    const { name } = await this.open();
    return execute(["session", verb, ...options, "--", name, ...given], this.#seconds);
  }

  /** Ends it, or leaves it as it is if something else has started it. */
  async close(stop: boolean): Promise<void> {
    const started = await this.#started?.catch(() => null);
    this.#closed = true;
    for (const connection of this.#spare.splice(0)) connection.close();
    if (!started || !(started.own || stop)) return;
    this.#started = null;
    await execute(["session", "stop", started.name], this.#seconds);
  }
}
