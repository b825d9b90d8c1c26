/** The image that a wheel brings: an archive beside the runner, which is unpacked when it is first used. */

import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

import { SandboxError } from "./errors.js";
import { execute, program, why } from "./runtime.js";

/** The directory of the image, which other programs of the user share; undefined for the one that lind-boot has. */
export async function bundled(seconds: number): Promise<string | undefined> {
  const images = join(dirname(dirname(realpathSync(program()))), "images");
  const known = join(images, "base.id");
  if (process.env["LIND_ROOT"] || !existsSync(known)) return undefined;
  const target = join(cache(), `base-${readFileSync(known, "utf8").trim()}`);
  if (!existsSync(target)) await unpack(join(images, "base.tar.zst"), target, seconds);
  // Images that nobody uses are removed.
  utimesSync(target, new Date(), new Date());
  return target;
}

/** The directory of unpacked images, which no other user can change. */
function cache(): string {
  const home = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  const folder = join(home, "lind-sandbox");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const user = process.geteuid?.();
  const [found, parent] = [lstatSync(folder), statSync(home)];
  const isOwn = found.isDirectory() && found.uid === user && (found.mode & 0o022) === 0;
  const keepsEntries = (parent.uid === 0 || parent.uid === user) && ((parent.mode & 0o002) === 0 || (parent.mode & 0o1000) !== 0);
  if (!isOwn || !keepsEntries) throw new SandboxError(`no place for the image of the sandbox: ${folder} must be a directory of yours that nobody else can change`);
  return folder;
}

/** Unpacks an image in one step, as others see it. */
async function unpack(archive: string, target: string, seconds: number): Promise<void> {
  const made = mkdtempSync(join(dirname(target), ".new-"));
  try {
    const { status, errors } = await execute(["unpack-image", archive, made], seconds);
    if (status !== 0) throw new SandboxError(`${archive} cannot be unpacked: ${why(errors) || `status ${status}`}`);
    chmodSync(made, 0o755);
    try {
      renameSync(made, target);
    } catch (error) {
      // Another process may have been faster.
      if (!existsSync(target)) throw error;
    }
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}
