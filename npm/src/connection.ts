/** A connection to a session: one request after the other. */

import { connect, type Socket } from "node:net";

import { FileError, RequestError, SandboxError, TimeoutExpired, shown } from "./errors.js";
import { Decoder, encode, text, type Keys, type Message } from "./messages.js";

/** Waits for something, and gives up after so many seconds. */
export async function within<T>(what: string, seconds: number | undefined, work: Promise<T>, giveUp: () => void): Promise<T> {
  if (seconds === undefined) return work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      giveUp();
      reject(new TimeoutExpired(what, seconds));
    }, seconds * 1000);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => {});
  }
}

/** The error that an answer of a session stands for. */
export function refusal(keys: Keys): RequestError {
  const message = shown(text(keys["error"]));
  const code = typeof keys["errno"] === "string" ? keys["errno"] : null;
  if (keys["path"] !== undefined && code !== null) return new FileError(`${code}: ${message}`, code, text(keys["path"]));
  return new RequestError(message, typeof keys["status"] === "number" ? keys["status"] : 125, code);
}

/** A connection. */
export class Connection {
  readonly #socket: Socket;
  readonly #source: AsyncIterator<Buffer>;
  readonly #decoder = new Decoder();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", () => {});
    this.#source = socket[Symbol.asyncIterator]();
  }

  /** Connects to the socket of a session. */
  static async open(path: string): Promise<Connection> {
    const socket = connect(path);
    await new Promise<void>((done, failed) => {
      socket.once("connect", done);
      socket.once("error", () => failed(new SandboxError("the sandbox has ended")));
    });
    return new Connection(socket);
  }

  /** Sends a message, and waits until most of what was sent has gone. */
  async send(keys: Keys, body?: Uint8Array): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed) throw new SandboxError("the sandbox has ended");
    if (socket.write(encode(keys, body))) return;
    await new Promise<void>((done) => {
      const end = () => {
        socket.off("drain", end).off("close", end);
        done();
      };
      socket.once("drain", end).once("close", end);
    });
  }

  /** The next message. An error is thrown as what it stands for. */
  async receive(): Promise<Message> {
    for (;;) {
      const message = this.#decoder.next();
      if (message !== null) {
        if ("error" in message.keys) throw refusal(message.keys);
        return message;
      }
      const piece = await this.#source.next().catch(() => ({ done: true as const, value: undefined }));
      if (piece.done) throw new SandboxError("the sandbox has ended");
      this.#decoder.feed(piece.value);
    }
  }

  /** Closes it. A command that it has started ends. */
  close(): void {
    this.#socket.destroy();
  }
}
