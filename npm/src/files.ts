/** The files of a sandbox. */

import type { Connection } from "./connection.js";
import { FileError } from "./errors.js";
import { list, pieces, word, type Keys, type Message } from "./messages.js";
import { readFile, type FileInfo } from "./results.js";
import type { Session } from "./session.js";

/** The path of a file: bytes where it is not UTF-8. */
export type Path = string | Uint8Array;

/** The most bytes that `read` returns, and the most entries of a list. */
const MOST = 256 << 20;
const ENTRIES = 100_000;

/** How many requests may be carried out at once: a session has 16 programs for them. */
const AT_ONCE = 8;

/** Lets so many at a time do something. */
class Slots {
  readonly #waiting: (() => void)[] = [];

  constructor(private free: number) {}

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free -= 1;
    else await new Promise<void>((go) => this.#waiting.push(go));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }
}

/**
 * The files, as commands see them and may change them: the policy holds here too. Paths that do not
 * begin with / are below the sandbox's working directory. A file that is not there is a FileError
 * with the code "ENOENT", and so for other errors.
 */
export class Files {
  readonly #session: Session;
  readonly #slots = new Slots(AT_ONCE);

  /** @internal */
  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * The bytes of a file, from `start`, and `count` of them: all, of at most 256 MiB, unless given.
   */
  async read(path: Path, options: { start?: number; count?: number } = {}): Promise<Buffer> {
    const { parts, last } = await this.#parts({ do: "read", path: word(path), from: options.start, count: options.count ?? MOST });
    if (options.count === undefined && last["more"] === true) throw new FileError(`EFBIG: larger than ${MOST} bytes: read it in parts`, "EFBIG", String(path));
    return Buffer.concat(parts.map(({ body }) => body));
  }

  /** The text of a file, which is UTF-8. */
  async readText(path: Path): Promise<string> {
    return (await this.read(path)).toString();
  }

  /**
   * Writes a file whole, in one step. `parents` makes the directories on the way; with `create` it
   * is an error if the file is there.
   */
  async write(path: Path, data: string | Uint8Array, options: { mode?: number; parents?: boolean; create?: boolean } = {}): Promise<void> {
    await this.#send("write", path, data, options);
  }

  /** Writes to the end of a file, which is made if it is not there. */
  async append(path: Path, data: string | Uint8Array, options: { mode?: number; parents?: boolean } = {}): Promise<void> {
    await this.#send("append", path, data, options);
  }

  /** The kind, size, mode and times of a file. With `follow: false` a link is looked at itself. */
  async stat(path: Path, options: { follow?: boolean } = {}): Promise<FileInfo> {
    return readFile((await this.#ask({ do: "stat", path: word(path), follow: options.follow ?? true })).keys["stat"]);
  }

  /** Whether there is a file of this name. */
  async exists(path: Path): Promise<boolean> {
    try {
      await this.stat(path, { follow: false });
      return true;
    } catch (error) {
      if (error instanceof FileError && (error.code === "ENOENT" || error.code === "ENOTDIR")) return false;
      throw error;
    }
  }

  /** The files of a directory, and with `recursive` of those in it. */
  async list(path: Path = ".", options: { recursive?: boolean; count?: number } = {}): Promise<FileInfo[]> {
    const count = options.count ?? ENTRIES;
    const { parts, last } = await this.#parts({ do: "list_files", path: word(path), recursive: options.recursive ?? false, count });
    if (last["more"] === true) throw new FileError(`EOVERFLOW: more than ${count} entries: \`count\` allows more`, "EOVERFLOW", String(path));
    return parts.flatMap(({ keys }) => list(keys["entries"]).map(readFile));
  }

  /** Makes a directory. */
  async mkdir(path: Path, options: { parents?: boolean; mode?: number } = {}): Promise<void> {
    await this.#ask({ do: "mkdir", path: word(path), ...options });
  }

  /**
   * Removes a file, or an empty directory, or with `recursive` a directory with all that is in it.
   */
  async remove(path: Path, options: { recursive?: boolean; missingOk?: boolean } = {}): Promise<void> {
    await this.#ask({ do: "remove", path: word(path), recursive: options.recursive ?? false, missing_ok: options.missingOk ?? false });
  }

  /** Gives a file another name. */
  async rename(path: Path, to: Path): Promise<void> {
    await this.#ask({ do: "rename", path: word(path), to: word(to) });
  }

  /** Copies a file, or with `recursive` a directory. */
  async copy(path: Path, to: Path, options: { recursive?: boolean; parents?: boolean } = {}): Promise<void> {
    await this.#ask({ do: "copy", path: word(path), to: word(to), ...options });
  }

  /** Makes a symbolic link to `target`. */
  async symlink(path: Path, target: Path): Promise<void> {
    await this.#ask({ do: "link", path: word(path), target: word(target) });
  }

  async #send(what: string, path: Path, data: string | Uint8Array, options: Keys): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    const all = [...pieces(bytes)];
    await this.#slots.use(() => this.#session.send({ do: what, path: word(path), ...options }, all));
  }

  async #parts(keys: Keys): Promise<{ parts: { keys: Keys; body: Buffer }[]; last: Keys }> {
    const read = async (connection: Connection) => {
      const parts = [];
      for (;;) {
        const message = await connection.receive();
        if (message.keys["done"] === true) return { parts, last: message.keys };
        parts.push(message);
      }
    };
    return this.#slots.use(() => this.#session.exchange([[keys]], read));
  }

  #ask(keys: Keys): Promise<Message> {
    return this.#slots.use(() => this.#session.ask(keys));
  }
}
