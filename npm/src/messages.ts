/**
 * The second version of the protocol of sessions: bytes to messages, messages to bytes. A message
 * is four bytes with the length of a text, the text, which is a JSON object, and as many bytes as
 * its key `bytes` says.
 */

import { SandboxError } from "./errors.js";

const VERSION = 2;
/** The most that the text of a message and the bytes behind it may have. */
export const MOST = 4 << 20;
/** How many bytes are sent with one message. */
export const PIECE = 1 << 20;
const HEAD = 4;

/** The keys of a message. */
export type Keys = Record<string, unknown>;

/** A message that has come. */
export interface Message {
  keys: Keys;
  body: Buffer;
}

/**
 * A name, or a word of a command line, for JSON: a text, or a list of numbers where it is not
 * UTF-8.
 */
export function word(value: string | Uint8Array): string | number[] {
  if (typeof value === "string") return value;
  const bytes = Buffer.from(value);
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? text : [...bytes];
}

/** The bytes of a name from JSON. */
export function bytes(value: unknown): Buffer {
  if (typeof value === "string") return Buffer.from(value);
  const isByte = (one: unknown) => Number.isInteger(one) && (one as number) >= 0 && (one as number) < 256;
  if (Array.isArray(value) && value.every(isByte)) return Buffer.from(value as number[]);
  throw wrong(`expected a text or a list of bytes, not ${JSON.stringify(value)}`);
}

/** A name from JSON as a text. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : bytes(value).toString();
}

/** A number from JSON. */
export function number(keys: Keys, key: string): number {
  const value = keys[key];
  if (typeof value !== "number") throw wrong(`${key}: expected a number`);
  return value;
}

/** An object from JSON. */
export function object(value: unknown): Keys {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong("expected an object");
  return value as Keys;
}

/** A list from JSON. */
export function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw wrong("expected a list");
  return value;
}

/** The error of a session that does not keep to the protocol. */
export function wrong(what: string): SandboxError {
  return new SandboxError(`the session does not keep to the protocol: ${what}`);
}

/** A message as bytes. Keys whose value is undefined or null are left out. */
export function encode(keys: Keys, body: Uint8Array = Buffer.alloc(0)): Buffer {
  const there = Object.entries(keys).filter(([, value]) => value !== undefined && value !== null);
  const head = { lind: VERSION, ...Object.fromEntries(there), ...(body.length > 0 && { bytes: body.length }) };
  const line = Buffer.from(JSON.stringify(head));
  if (line.length > MOST || body.length > MOST) throw new RangeError(`the request is too long: ${MOST} bytes are allowed`);
  const length = Buffer.alloc(HEAD);
  length.writeUInt32LE(line.length);
  return Buffer.concat([length, line, body]);
}

/** Data in parts that a message can have: one empty part for no data. */
export function* pieces(data: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < Math.max(data.length, 1); at += PIECE) yield data.subarray(at, at + PIECE);
}

/** Makes messages of the bytes that come. */
export class Decoder {
  #parts: Buffer[] = [];
  #length = 0;
  #keys: Keys | null = null;
  #body = 0;

  /** Takes bytes. */
  feed(data: Buffer): void {
    this.#parts.push(data);
    this.#length += data.length;
  }

  /** The next message, or null if it has not come whole. */
  next(): Message | null {
    this.#keys ??= this.#head();
    if (this.#keys === null || this.#length < this.#body) return null;
    const message = { keys: this.#keys, body: this.#take(this.#body) };
    this.#keys = null;
    return message;
  }

  #head(): Keys | null {
    if (this.#length < HEAD) return null;
    const length = this.#whole().readUInt32LE();
    if (length > MOST) throw wrong(`a message of ${length} bytes`);
    if (this.#length < HEAD + length) return null;
    const line = this.#take(HEAD + length).subarray(HEAD).toString();
    let keys: Keys;
    try {
      keys = object(JSON.parse(line));
    } catch {
      throw wrong("a message is not a JSON object");
    }
    const body = keys["bytes"] ?? 0;
    if (!Number.isInteger(body) || (body as number) < 0 || (body as number) > MOST) throw wrong("a message with too many bytes");
    this.#body = body as number;
    return keys;
  }

  #whole(): Buffer {
    const whole = this.#parts.length === 1 && this.#parts[0] ? this.#parts[0] : Buffer.concat(this.#parts);
    this.#parts = [whole];
    return whole;
  }

  #take(count: number): Buffer {
    const whole = this.#whole();
    this.#parts = [whole.subarray(count)];
    this.#length -= count;
    return whole.subarray(0, count);
  }
}
