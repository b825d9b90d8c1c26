/** Sandboxes for commands: a client of lind-boot. */

export { CommandError, CommandNotStarted, FileError, LindError, RequestError, SandboxError, TimeoutExpired } from "./errors.js";
export { Files, type Path } from "./files.js";
export { Process } from "./process.js";
export type { Applied, Denial, Difference, FileInfo, Output, Result } from "./results.js";
export { program, type Limits, type SandboxOptions } from "./runtime.js";
export { Sandbox, run, type Command, type Of, type RunOptions, type StartOptions } from "./sandbox.js";
